"""Runs one attack on a gateway and judges its effect on memory and on a normal caller."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf
from random import Random
from typing import Any, Protocol

from faults.http.attacks import ATTACKS
from faults.http.task import Address, Attack, Task
from faults.http.watch import Peak, Usage
from queueber.tls import TlsOptions
from tests.support.http import GatewayProcess

P99_RATIO_MAX = 3.0
P99_MS_FREE = 50.0
"""A lower p99 counts as no harm, whatever it was before: it may be noise of the machine."""
GROWTH_MB_MAX = 400.0


class Witness(Protocol):
    """A normal caller."""

    failures: list[str]

    def take_p99_ms(self) -> float: ...


def _attack(result: Any, attack: Attack, task: Task) -> None:
    # The attack must harm the gateway, not take its processor time.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    task = Task(task.address, task.random, task.seconds, task.tls)
    result.send(attack(task))


def _run_attack(attack: Attack, task: Task) -> int:
    """In a process of its own; -1 if it did not end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_attack, args=(theirs, attack, task), daemon=True)
    process.start()
    theirs.close()
    count = -1
    with contextlib.suppress(EOFError):
        count = ours.recv() if ours.poll(task.seconds * 3 + 60) else -1
    process.join(10)
    if process.is_alive():
        process.kill()
    return int(count)


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    count: int
    before_mb: float
    most_mb: float
    quiet_ms: float
    """The p99 of the normal caller before the attack."""
    harmed_ms: float
    """The same during it."""
    wrong: str
    """Empty: nothing."""


def judge(
    gateway: GatewayProcess,
    caller: Witness,
    name: str,
    seconds: float,
    seed: int,
    attacks: Mapping[str, Attack] = ATTACKS,
    address: Address | None = None,
    tls: TlsOptions | None = None,
) -> Verdict:
    """Print what an attack did to the gateway's HTTP port, or another one."""
    time.sleep(1)
    caller.take_p99_ms()
    time.sleep(2)
    quiet_ms, failures = caller.take_p99_ms(), len(caller.failures)
    usage = Usage(gateway.process.pid)
    with Peak(usage) as peak:
        task = Task(address or gateway.host_port, Random(f"{seed} {name}"), seconds, tls)
        count = _run_attack(attacks[name], task)
        harmed_ms = caller.take_p99_ms()
    wrong = []
    if gateway.process.poll() is not None:
        wrong.append("the gateway has ended")
    if count < 0:
        wrong.append("the attack did not end")
    # A connection that is refused at the limit is no failure: connections are what is attacked.
    if name != "many connections":
        wrong += caller.failures[failures:][:1]
    if (grown := peak.most - peak.before) > GROWTH_MB_MAX:
        wrong.append(f"grew by {grown:.0f} MB")
    if isinf(quiet_ms):
        wrong.append("nothing was answered in the quiet before the attack")
    elif harmed_ms > max(P99_MS_FREE, P99_RATIO_MAX * quiet_ms):
        wrong.append(f"p99 {harmed_ms / quiet_ms:.1f}x")
    print(
        f"{name:20} {count:8} {peak.before:7.0f} {peak.most:7.0f} {quiet_ms:8.1f} "
        f"{harmed_ms:8.1f}  {', '.join(wrong) or 'ok'}",
        flush=True,
    )
    return Verdict(name, count, peak.before, peak.most, quiet_ms, harmed_ms, ", ".join(wrong))
