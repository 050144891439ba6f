"""Runs every kind of hostile caller against a gateway, and judges what others notice of it."""

import argparse
import contextlib
import os
import socket
import sys
import time

import queueber
from faults.http.attacks import ATTACKS
from faults.http.judge import judge
from faults.http.live_readers import CONNECTIONS_MAX, LIVE, live_readers
from faults.http.stream_attacks import BYTES, ROOT, STREAM, TEXT
from faults.http.watch import Caller, Usage
from queueber.testing import running_server
from tests.support.http import GatewayProcess, running_gateway

_TRIES = 2
_POLLS = 1_000
_POLLS_CPU_MAX = 0.05
_POLLS_SECONDS = 10.0
_FLAGS = ("--header-timeout-ms=2000", "--body-timeout-ms=2000", "--answer-timeout-ms=2000",
          "--connections-max=2000")  # fmt: skip


def _idle_polls(gateway: GatewayProcess, server_process_id: int) -> bool:
    """A thousand polls that wait: whether they cost next to nothing."""
    body = b'{"wait_ms":120000}'
    request = (
        b"POST /v1/queues/hostile-empty/poll HTTP/1.1\r\nhost: localhost\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    )
    used = Usage(gateway.process.pid), Usage(server_process_id)
    with contextlib.ExitStack() as stack:
        for _ in range(_POLLS):
            connection = socket.create_connection(gateway.host_port, timeout=10)
            stack.enter_context(contextlib.closing(connection)).sendall(request)
        time.sleep(3)
        before = [each.cpu_seconds for each in used]
        time.sleep(_POLLS_SECONDS)
        shares = [
            (each.cpu_seconds - first) / _POLLS_SECONDS
            for each, first in zip(used, before, strict=True)
        ]
    print(
        f"{_POLLS} idle polls: gateway {shares[0]:.1%} of a core and {used[0].megabytes:.0f} MB, "
        f"server {shares[1]:.1%}"
    )
    return shares[0] < _POLLS_CPU_MAX


def _fill_streams(gateway: GatewayProcess) -> None:
    """Create the streams that attacks ask for, one of them with some megabytes."""
    for name, kind in ((STREAM, BYTES), (LIVE, TEXT)):
        path, headers = (ROOT + name).decode(), {"content-type": kind.decode()}
        made = gateway.ask("PUT", path, raw=b"", headers=headers)
        assert made.status in (200, 201), made.body
    for _ in range(8):
        gateway.ask("POST", (ROOT + STREAM).decode(), raw=os.urandom(1 << 20))


def _live_readers(server: str, count: int, seconds: float) -> bool:
    """Whether many readers of a stream harm others, or each other."""
    with (
        running_gateway(server, f"--connections-max={CONNECTIONS_MAX}") as gateway,
        Caller(gateway.host_port) as caller,
    ):
        return live_readers(gateway, caller, count, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.http", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind of attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only attacks whose name contains this")
    parser.add_argument("--readers", type=int, default=10_000, help="of the live stream")
    options = parser.parse_args()
    names = [name for name in ATTACKS if not options.only or options.only in name]
    with running_server() as server, running_gateway(server.address, *_FLAGS) as gateway:
        assert server.process is not None
        with queueber.connect(server.address) as client:
            client.queue("hostile-big").add([os.urandom(1 << 20) for _ in range(8)])
            client.queue("hostile-empty").stats()
        _fill_streams(gateway)
        are_cheap = _idle_polls(gateway, server.process.pid)
        print(f"{'attack':20} {'count':>8} {'before':>7} {'most':>7} {'quiet':>8} {'p99':>8}  "
              "verdict   (MB, ms)")  # fmt: skip
        bad = 0
        with Caller(gateway.host_port) as caller:
            for name in names:
                tries = (
                    judge(gateway, caller, name, options.seconds, options.seed + at).wrong
                    for at in range(_TRIES)
                )
                bad += all(tries)
        print(f"the gateway ended with {gateway.stop()}")
        if options.readers and (not options.only or options.only in "live readers"):
            bad += _live_readers(server.address, options.readers, options.seconds)
    return 0 if are_cheap and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
