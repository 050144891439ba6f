"""Runs every kind of hostile client against a server, one after the other, and judges it."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import queueber
from faults.bystander import Bystander
from faults.hostile.attacks import ATTACKS, BIG, LARGE_ITEM, Task
from faults.hostile.judge import Verdict, attack
from faults.hostile.tls_attacks import TLS_ATTACKS
from faults.hostile.witness import Witness
from queueber.testing import ServerProcess, running_server
from queueber.tls import TlsOptions
from tests.support.certificates import new_authority

_TRIES = 2
"""Attempts at an attack: harm in only one of them may come from the machine."""


def fill(address: str, tls: TlsOptions | None = None) -> None:
    """Add the items and messages that attacks ask for."""
    with queueber.connect(address, tls=tls) as client:
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


def _harms(
    server: ServerProcess, names: list[str], seed: int, seconds: float, tls: TlsOptions | None
) -> Iterator[bool]:
    """The verdict on each attack."""
    witness = Witness(server.address, tls=tls)
    witness.take()
    for at, name in enumerate(names):
        for _ in range(_TRIES):
            task = Task(server.address, Random(f"{seed} {at}"), seconds, tls)
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
    parser.add_argument("--tls", action="store_true", help="a server with TLS")
    options = parser.parse_args()
    known = {**ATTACKS, **TLS_ATTACKS} if options.tls else ATTACKS
    names = [name for name in known if not options.only or options.only in name]
    print(f"seed {options.seed}{', with TLS' if options.tls else ''}")
    print(f"{'attack':22} {'count':>8} {'before':>7} {'most':>7} {'after':>7} {'quiet':>8} "
          f"{'p99':>8} {'ratio':>6}  verdict   (MB, ms)")  # fmt: skip
    with ExitStack() as stack:
        flags: tuple[str, ...] = ()
        tls: TlsOptions | None = None
        if options.tls:
            folder = stack.enter_context(TemporaryDirectory(prefix="queueber-"))
            authority = new_authority(Path(folder))
            flags, tls = authority.server_options(), authority.trusted()
        server = stack.enter_context(running_server(*flags))
        fill(server.address, tls)
        with Bystander(server.address, tls) as bystander:
            bad = sum(_harms(server, names, options.seed, options.seconds, tls))
        print(*bystander.wrong, f"{bystander.calls} calls of another client were checked", sep="\n")
        print(f"the server ended with {server.stop()}")
    return 1 if bad or bystander.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
