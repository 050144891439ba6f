"""Runs every kind of hostile caller against the gRPC port of a gateway, and judges what others
notice of it."""

import argparse
import os
import sys

import queueber
from faults.grpc.attacks import ATTACKS, BIG, EMPTY
from faults.grpc.caller import Caller
from faults.http.judge import judge
from queueber.config import split_address
from queueber.testing import running_server
from tests.support.grpc import running_grpc

_TRIES = 2
_FLAGS = ("--header-timeout-ms=2000", "--body-timeout-ms=2000", "--answer-timeout-ms=2000",
          "--connections-max=2000", "--answers-bytes-max=134217728")  # fmt: skip


def _fill(server: str) -> None:
    """The topics that attacks subscribe to, one of them with some megabytes."""
    with queueber.connect(server) as client:
        client.create_topic(EMPTY)
        for _ in range(16):
            client.topic(BIG).publish(os.urandom(4 << 20))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.grpc", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind of attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only attacks whose name contains this")
    options = parser.parse_args()
    names = [name for name in ATTACKS if not options.only or options.only in name]
    with running_server() as server, running_grpc(server.address, *_FLAGS) as (gateway, address):
        _fill(server.address)
        print(f"{'attack':18} {'count':>8} {'before':>7} {'most':>7} {'quiet':>8} {'p99':>8}  "
              "verdict   (MB, ms)")  # fmt: skip
        bad, attacked = 0, split_address(address)
        with Caller(address) as caller:
            for name in names:
                bad += all(
                    judge(
                        gateway, caller, name, options.seconds, options.seed + at, ATTACKS, attacked
                    )
                    for at in range(_TRIES)
                )
        print(f"the gateway ended with {gateway.stop()}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
