"""Runs one attack on a server and judges its effect on memory and on a normal client."""

import contextlib
import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from faults.hostile.attacks import ATTACKS, Task
from faults.hostile.tls_attacks import TLS_ATTACKS
from faults.hostile.witness import MemoryWatch, Witness, p99_ms
from queueber.testing import ServerProcess

P99_RATIO_MAX = 3.0
P99_MS_FREE = 25.0
"""A lower p99 counts as no harm, whatever it was before: it may be noise of the machine."""
_SETTLE_SECONDS = 1.0
_KNOWN = ATTACKS | TLS_ATTACKS


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    count: int
    before_mb: float
    most_mb: float
    after_mb: float
    quiet_ms: float
    p99_ms: float
    wrong: str

    @property
    def ratio(self) -> float:
        return self.p99_ms / self.quiet_ms


def _attack(result: "Connection[int, None]", name: str, task: Task) -> None:
    # The attack must harm the server, not take its processor time.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    result.send(_KNOWN[name].run(task))


def attack(server: ServerProcess, witness: Witness, name: str, task: Task) -> Verdict:
    """Run one attack in its own process, and judge its effect."""
    witness.take()
    time.sleep(2 * _SETTLE_SECONDS)
    quiet_ms = p99_ms(witness.take())
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with MemoryWatch(server) as memory:
        process = context.Process(target=_attack, args=(theirs, name, task), daemon=True)
        process.start()
        theirs.close()
        count = -1
        with contextlib.suppress(EOFError):
            count = ours.recv() if ours.poll(task.seconds * 3 + 60) else -1
        harmed_ms = p99_ms(witness.take())
        process.join(10)
        if process.is_alive():
            process.kill()
        time.sleep(_SETTLE_SECONDS)
    grown = memory.most - memory.before
    wrong = []
    if server.process is None or server.process.poll() is not None:
        wrong.append("the server has ended")
    if count < 0:
        wrong.append("the attack did not end")
    if grown > _KNOWN[name].growth_mb_max:
        wrong.append(f"grew by {grown:.0f} MB")
    if harmed_ms > max(P99_MS_FREE, P99_RATIO_MAX * quiet_ms):
        wrong.append(f"p99 {harmed_ms / quiet_ms:.1f}x")
    return Verdict(
        name, count, memory.before, memory.most, memory.after, quiet_ms, harmed_ms,
        ", ".join(wrong),
    )  # fmt: skip
