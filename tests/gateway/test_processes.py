"""`queueber gateway --processes`: several processes on one port."""

import json
import os
import signal
import subprocess
import time

import pytest

from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess, running_gateway

pytestmark = pytest.mark.slow


def children_of(gateway: GatewayProcess) -> set[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(gateway.process.pid)],
        capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    return {int(each) for each in found}


def wait_for_children(gateway: GatewayProcess, count: int, *, without: int = 0) -> set[int]:
    give_up_at = time.monotonic() + 20
    while len(found := children_of(gateway) - {without}) != count:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    return found


def test_all_of_them_answer_on_one_port_and_one_that_is_killed_is_started_again(
    server: ServerProcess,
) -> None:
    with running_gateway(server.address, "--processes=2") as gateway:
        first, _ = sorted(wait_for_children(gateway, 2))
        assert all(gateway.ask("GET", "/readyz").status == 200 for _ in range(20))

        os.kill(first, signal.SIGKILL)
        wait_for_children(gateway, 2, without=first)
        assert all(gateway.ask("GET", "/readyz").status == 200 for _ in range(20))

        assert gateway.stop() == 0
        log = [json.loads(line) for line in gateway.log_file.read_text().splitlines()]

    assert [line["exit_code"] for line in log if line["event"] == "gateway_died"] == [-9]
    assert sum(line["event"] == "gateway_stopped" for line in log) == 2


def test_a_gateway_without_a_server_lives_and_is_not_ready() -> None:
    with running_gateway("127.0.0.1:1", "--retry-timeout-ms=200") as gateway:
        healthy = gateway.ask("GET", "/healthz")
        ready = gateway.ask("GET", "/readyz")
        added = gateway.ask("POST", "/v1/queues/q/items", {"items": [{"contents": ""}]})

    assert healthy.json == {"status": "ok"}
    for refused in (ready, added):
        assert (refused.status, refused.code) == (503, "UNAVAILABLE")
        assert refused.headers["retry-after"] == "1"


def test_a_port_that_is_in_use_is_a_clear_error(gateway: GatewayProcess) -> None:
    with (
        pytest.raises(RuntimeError, match=r"cannot listen on .*address already in use; choose"),
        running_gateway("127.0.0.1:1", "--http", gateway.address),
    ):
        pass
