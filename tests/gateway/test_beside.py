"""`queueber serve --http`: a gateway beside the server, which starts it again and stops it."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.support.certificates import new_authority
from tests.support.http import Answered, GatewayProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[ServerProcess, GatewayProcess]]:
    with started(tmp_path) as pair:
        yield pair


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[ServerProcess, GatewayProcess]]:
    address_file = folder / "http"
    flags = ("--http", "127.0.0.1:0", "--http-address-file", str(address_file), *options)
    server = ServerProcess(folder / "data", flags)
    server.start()
    assert server.process is not None
    gateway = GatewayProcess("", server.process, server.log_file)
    try:
        give_up_at = time.monotonic() + 20
        while not (address_file.is_file() and address_file.read_text()):
            assert time.monotonic() < give_up_at
            time.sleep(0.02)
        gateway.address = address_file.read_text()
        yield server, gateway
    finally:
        if server.process.poll() is None:
            server.kill()


def events(server: ServerProcess, name: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in server.log_file.read_text().splitlines()]
    return [line for line in lines if line["event"] == name]


def child_of(server: ServerProcess) -> int:
    """The process of the gateway."""
    assert server.process is not None
    give_up_at = time.monotonic() + 20
    while time.monotonic() < give_up_at:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)],
            capture_output=True, text=True, check=False,
        ).stdout.split()  # fmt: skip
        if found:
            return int(found[0])
        time.sleep(0.05)
    raise AssertionError("the server has no gateway")


def wait_until_gone(process_id: int) -> None:
    give_up_at = time.monotonic() + 20
    while Path(f"/proc/{process_id}").exists():
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":
            return
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def ready(gateway: GatewayProcess) -> Answered:
    return gateway.ask("GET", "/readyz")


def test_it_answers_and_stops_with_the_server(
    both: tuple[ServerProcess, GatewayProcess],
) -> None:
    server, gateway = both

    assert ready(gateway).json == {"status": "ready"}
    child = child_of(server)
    assert server.stop() == 0

    wait_until_gone(child)
    assert [line["process"] for line in events(server, "gateway_listening")] == ["gateway"]
    assert len(events(server, "gateway_stopped")) == 1
    assert events(server, "gateway_died") == []


def test_one_that_is_killed_is_started_again_on_the_same_port_and_takes_nothing_with_it(
    both: tuple[ServerProcess, GatewayProcess],
) -> None:
    server, gateway = both
    with queueber.connect(server.address) as client:
        client.queue("q").add(b"x")
        ready(gateway)

        first = child_of(server)
        os.kill(first, signal.SIGKILL)
        wait_until_gone(first)
        answered = gateway.ask("POST", "/v1/queues/q/poll", {"wait_ms": 0})

        assert len(answered.json["items"]) == 1
        assert client.queue("q").stats().leased == 1
    [died] = events(server, "gateway_died")
    assert (died["exit_code"], died["restart_seconds"]) == (-signal.SIGKILL, 0.1)
    assert server.stop() == 0


def test_it_ends_when_the_server_is_killed(both: tuple[ServerProcess, GatewayProcess]) -> None:
    server, gateway = both
    ready(gateway)
    child = child_of(server)

    server.kill()

    wait_until_gone(child)


def test_a_poll_that_waits_is_told_that_the_gateway_stops(
    both: tuple[ServerProcess, GatewayProcess],
) -> None:
    server, gateway = both
    ready(gateway)
    connection = gateway.connection()
    connection.request("POST", "/v1/queues/q/poll", b"{}", {"content-type": "application/json"})
    with queueber.connect(server.address) as client:
        while client.queue("q").stats().waiting_polls != 1:
            time.sleep(0.02)

    began = time.monotonic()
    assert server.stop() == 0
    response = connection.getresponse()

    assert response.status == 503
    assert json.loads(response.read())["code"] == "UNAVAILABLE"
    assert time.monotonic() - began < 15


def test_it_speaks_tls_on_both_sides_with_the_certificate_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An authority that no machine trusts is named in the environment."""
    authority = new_authority(tmp_path / "authority")
    monkeypatch.setenv("QUEUEBER_GATEWAY_SERVER_TLS_CA", str(authority.ca_file))
    context = ssl.create_default_context(cafile=authority.ca_file)

    with started(tmp_path, *authority.server_options()) as (_, gateway):
        connection = http.client.HTTPSConnection(*gateway.host_port, context=context, timeout=20)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()

        assert (answer.status, json.loads(answer.read())) == (200, {"status": "ready"})
        connection.close()
