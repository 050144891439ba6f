"""Runs every kind of hostile client against a server, one after the other, and judges it."""

import argparse
import os
import sys
from collections.abc import Iterator
from random import Random

import queueber
from faults.bystander import Bystander
from faults.hostile.attacks import ATTACKS, BIG, LARGE_ITEM, Task
from faults.hostile.judge import Verdict, attack
from faults.hostile.witness import Witness
from queueber.testing import ServerProcess, running_server

_TRIES = 2
"""Attempts at an attack: harm in only one of them may come from the machine."""


def fill(address: str) -> None:
    """Add the items and messages that attacks ask for."""
    with queueber.connect(address) as client:
        for _ in range(8):
            client.queue(BIG).add(os.urandom(LARGE_ITEM))
            client.topic(BIG).publish(os.urandom(LARGE_ITEM))
        client.queue("hostile-empty").stats()
        client.topic("hostile-topic").publish([b"x"] * 1000)


def shown(verdict: Verdict) -> str:
    return (
        f"{verdict.name:22} {verdict.count:8} {verdict.before_mb:7.0f} {verdict.most_mb:7.0f} "
        f"{verdict.after_mb:7.0f} {verdict.quiet_ms:8.1f} {verdict.p99_ms:8.1f} "
        f"{verdict.ratio:6.1f}  {verdict.wrong or 'ok'}"
    )


def _harms(server: ServerProcess, names: list[str], seed: int, seconds: float) -> Iterator[bool]:
    """The verdict on each attack."""
    witness = Witness(server.address)
    witness.take()
    for at, name in enumerate(names):
        for _ in range(_TRIES):
            task = Task(server.address, Random(f"{seed} {at}"), seconds)
            verdict = attack(server, witness, name, task)
            print(shown(verdict), flush=True)
            if not verdict.wrong:
                break
        yield bool(verdict.wrong)
    witness.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind of attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only attacks whose name contains this")
    options = parser.parse_args()
    names = [name for name in ATTACKS if not options.only or options.only in name]
    print(f"seed {options.seed}")
    print(f"{'attack':22} {'count':>8} {'before':>7} {'most':>7} {'after':>7} {'quiet':>8} "
          f"{'p99':>8} {'ratio':>6}  verdict   (MB, ms)")  # fmt: skip
    with running_server() as server:
        fill(server.address)
        with Bystander(server.address) as bystander:
            bad = sum(_harms(server, names, options.seed, options.seconds))
        print(*bystander.wrong, f"{bystander.calls} calls of another client were checked", sep="\n")
        print(f"the server ended with {server.stop()}")
    return 1 if bad or bystander.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
