"""What is too much, too slow or no HTTP at all is refused or hung up on; others are served."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from queueber.limits import MIB
from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess, running_gateway, to_base64

HEAD = b"POST /v1/queues/q/items HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture(scope="module")
def strict(server: ServerProcess) -> Iterator[GatewayProcess]:
    flags = (
        "--connections-max=20", "--header-timeout-ms=500", "--body-timeout-ms=500",
        "--answer-timeout-ms=500", "--idle-timeout-ms=500", "--body-bytes-max=200000",
        "--bodies-bytes-max=300000", "--header-bytes-max=4096", "--waits-max=3",
    )  # fmt: skip
    with running_gateway(server.address, *flags) as running:
        yield running


def connect(gateway: GatewayProcess) -> socket.socket:
    return socket.create_connection(gateway.host_port, timeout=20)


def told(connection: socket.socket) -> bytes:
    """All that is sent until the connection ends."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 10_000, 431),
        (HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx", 400),
        (HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nxx", 400),
        (HEAD + b"content-length: 200001\r\n\r\n", 413),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 32768 + b"\r\n", 0),
    ],
)
def test_what_is_no_request_or_too_large_is_refused(
    strict: GatewayProcess, sent: bytes, status: int
) -> None:
    with contextlib.closing(connect(strict)) as connection:
        connection.sendall(sent)
        answer = told(connection)

    if status:
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
        assert b"content-type: application/problem+json" in answer
    assert strict.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HT", HEAD, HEAD + b"content-length: 10\r\n\r\nxx"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_a_slow_sender_is_hung_up_on(strict: GatewayProcess, sent: bytes) -> None:
    with contextlib.closing(connect(strict)) as connection:
        connection.sendall(sent)
        began = time.monotonic()
        answer = told(connection)

    assert answer == b""
    assert time.monotonic() - began < 10


def test_a_sender_of_a_byte_now_and_then_is_hung_up_on(strict: GatewayProcess) -> None:
    began = time.monotonic()
    with contextlib.closing(connect(strict)) as connection, contextlib.suppress(OSError):
        for byte in HEAD * 10:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)
            assert time.monotonic() - began < 10

    assert time.monotonic() - began < 10


def test_an_idle_connection_is_closed(strict: GatewayProcess) -> None:
    with contextlib.closing(connect(strict)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = told(connection)

    assert answer.count(b"HTTP/1.1 200 OK") == 1


def test_a_slow_reader_is_hung_up_on(strict: GatewayProcess) -> None:
    large = {"items": [{"contents": to_base64(bytes(100_000))}]}
    for _ in range(60):
        strict.ask("POST", "/v1/queues/large/items", large)
    with contextlib.closing(connect(strict)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(b"GET /v1/queues/large/items HTTP/1.1\r\nhost: localhost\r\n\r\n")
        time.sleep(4)
        received = told(connection)

    assert received.startswith(b"HTTP/1.1 200 OK")
    assert len(received) < 6_000_000


def test_connections_above_the_limit_are_refused(strict: GatewayProcess) -> None:
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(contextlib.closing(connect(strict))) for _ in range(20)]
        with contextlib.closing(connect(strict)) as one_more:
            answer = told(one_more)
        assert len(opened) == 20

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in answer


def test_polls_above_the_limit_are_told_to_come_back(strict: GatewayProcess, queue: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(contextlib.closing(connect(strict)))
            body = b'{"wait_ms":20000}'
            connection.sendall(
                b"POST %s/poll HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%s" % (queue.encode(), len(body), body)
            )
        time.sleep(1)
        refused = strict.ask("POST", f"{queue}/poll", {"wait_ms": 1000})
        served = strict.ask("POST", f"{queue}/poll", {"wait_ms": 0})

    assert (refused.status, refused.code) == (503, "UNAVAILABLE")
    assert refused.headers["retry-after"] == "1"
    assert served.status == 200


def test_unread_answers_never_exceed_their_bound(server: ServerProcess) -> None:
    """Callers that ask for megabytes at once and read nothing are cut before a watch sees them."""
    most = 12 * MIB
    flags = (f"--answers-bytes-max={most}", "--answer-timeout-ms=60000")
    request = b"GET /v1/queues/unread/items HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running_gateway(server.address, *flags) as gateway:
        for _ in range(6):
            contents = {"items": [{"contents": to_base64(bytes(MIB))}]}
            gateway.ask("POST", "/v1/queues/unread/items", contents)
        with contextlib.ExitStack() as stack:
            for _ in range(30):
                connection = stack.enter_context(contextlib.closing(connect(gateway)))
                connection.sendall(request)
            counts = [_unread_bytes(gateway) for _ in range(40)]
            time.sleep(1.5)
            served = gateway.ask("GET", "/v1/queues/unread/items")
        assert 0 < max(counts) <= most
        assert served.status == 200  # those who read nothing for a second made room for it
        assert len(served.json["items"]) == 5
        give_up_at = time.monotonic() + 10
        while _unread_bytes(gateway) and time.monotonic() < give_up_at:
            time.sleep(0.1)
        assert _unread_bytes(gateway) == 0


def _unread_bytes(gateway: GatewayProcess) -> int:
    text = gateway.ask("GET", "/metrics").body.decode()
    (line,) = [
        each for each in text.splitlines() if each.startswith("queueber_gateway_unread_bytes{")
    ]
    return int(float(line.rpartition(" ")[2]))
