"""Runs every kind of hostile caller against the gRPC port of a gateway, and judges what others
notice of it."""

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import queueber
from faults.grpc.attacks import ATTACKS
from faults.grpc.caller import Caller
from faults.grpc.said import BIG, EMPTY, SMALL
from faults.grpc.table import better_of, name_of, rendered, write
from faults.grpc.tls_attacks import TLS_ATTACKS
from faults.http.judge import judge
from faults.http.task import Task
from queueber.config import split_address
from queueber.testing import running_server
from queueber.tls import TlsOptions
from tests.support.certificates import HOSTS, new_authority
from tests.support.grpc import running_grpc

_TRIES = 2
FLAGS: tuple[str, ...] = (
    "--header-timeout-ms=2000", "--body-timeout-ms=2000", "--answer-timeout-ms=2000",
    "--connections-max=2000", "--answers-bytes-max=134217728",
)  # fmt: skip


def fill(server: str) -> None:
    """The topics that attacks are about."""
    with queueber.connect(server) as client:
        client.create_topic(EMPTY)
        client.topic(SMALL).publish([b"x"] * 100)
        for _ in range(16):
            client.topic(BIG).publish(os.urandom(4 << 20))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.grpc", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind of attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only attacks whose name contains this")
    parser.add_argument("--tls", action="store_true", help="a port with TLS")
    parser.add_argument("--page", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    known: dict[str, Callable[[Task], int]] = {**ATTACKS, **TLS_ATTACKS} if options.tls else ATTACKS
    if options.page:
        if options.only:
            parser.error("--only: a page has all attacks; leave it out")
        known = TLS_ATTACKS if options.tls else ATTACKS
    names = [name for name in known if not options.only or options.only in name]
    with ExitStack() as stack:
        flags, tls, certificate = FLAGS, None, None
        if options.tls:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="queueber-")))
            authority = new_authority(folder)
            flags = (*flags, "--tls-certificate", str(authority.issue("gateway", *HOSTS)))
            certificate, tls = authority.ca_file.read_bytes(), TlsOptions(authority.ca_file)
        server = stack.enter_context(running_server())
        gateway, address = stack.enter_context(running_grpc(server.address, *flags))
        fill(server.address)
        print(f"{'attack':20} {'count':>8} {'before':>7} {'most':>7} {'quiet':>8} {'p99':>8}  "
              "verdict   (MB, ms)")  # fmt: skip
        attacked = split_address(address)
        with Caller(address, certificate) as caller:
            verdicts = [
                better_of(
                    judge(
                        gateway, caller, name, options.seconds, options.seed + at, known, attacked,
                        tls,
                    )
                    for at in range(_TRIES)
                )
                for name in names
            ]  # fmt: skip
        print(f"the gateway ended with {gateway.stop()}")
    if options.page:
        write(name_of(has_tls=options.tls), rendered(known, verdicts))
    return 1 if any(each.wrong for each in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
