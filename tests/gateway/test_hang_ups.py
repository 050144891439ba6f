"""A caller that hangs up during a long poll takes nothing."""

import contextlib
import socket
import time

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess


def send_poll(gateway: GatewayProcess, queue: str, wait_ms: int = 30_000) -> socket.socket:
    connection = socket.create_connection(gateway.host_port, timeout=30)
    body = b'{"wait_ms": %d}' % wait_ms
    connection.sendall(
        b"POST %s/poll HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (queue.encode(), len(body), body)
    )
    return connection


def wait_until_polls(queue: queueber.Queue, count: int) -> None:
    give_up_at = time.monotonic() + 20
    while queue.stats().waiting_polls != count:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_an_item_stays_ready_and_no_attempt_is_counted(
    server: ServerProcess, gateway: GatewayProcess, queue: str, how: str
) -> None:
    with queueber.connect(server.address) as client:
        added_to = client.queue(queue.rpartition("/")[2])
        with contextlib.closing(send_poll(gateway, queue)) as connection:
            wait_until_polls(added_to, 1)
            if how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            if how == "half":
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.close()
            wait_until_polls(added_to, 0)

        added_to.add(b"x")
        stats = added_to.stats()
        [item] = added_to.peek("ready").items

    assert (stats.ready, stats.leased, stats.polled_total) == (1, 0, 0)
    assert item.attempts == 0


def test_a_poll_that_waits_gets_the_item_that_comes(
    server: ServerProcess, gateway: GatewayProcess, queue: str
) -> None:
    with queueber.connect(server.address) as client:
        added_to = client.queue(queue.rpartition("/")[2])
        with contextlib.closing(send_poll(gateway, queue)) as connection:
            wait_until_polls(added_to, 1)
            added_to.add(b"hello")
            answer = connection.recv(65536)
            while b'"contents"' not in answer and (more := connection.recv(65536)):
                answer += more

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"contents":"aGVsbG8="' in answer


def test_a_second_request_before_the_answer_is_not_answered(
    server: ServerProcess, gateway: GatewayProcess, queue: str
) -> None:
    """Reading goes on meanwhile, so that a hang-up is noticed; the connection ends after it."""
    with queueber.connect(server.address) as client:
        added_to = client.queue(queue.rpartition("/")[2])
        with contextlib.closing(send_poll(gateway, queue)) as connection:
            wait_until_polls(added_to, 1)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            added_to.add(b"hello")
            received = b""
            while piece := connection.recv(65536):
                received += piece

    assert received.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in received
