"""Offers a server more load than it can handle; measures throughput, latency and recovery."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import queueber
from faults.load import Load, Tally
from queueber.testing import ServerProcess, running_server

CONNECTIONS = 32
ITEMS, ITEM_BYTES = 20, 100
RATE_MIN = 0.7
"""The share of the capacity that must remain at any load. Capacity is the number of calls that the
server answers in a second of processor time, so that other work on the machine does not matter."""
ANSWERED_MIN = 0.4
"""The share of the calls a second just before and after that must still be answered: it finds a
server that only refuses. The callers of five times the load take processor time as well."""
P99_MS_MAX = 4000.0
RECOVERY_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    times: float
    tally: Tally
    share: float
    """Share of the capacity."""
    wrong: str

    def shown(self) -> str:
        tally = self.tally
        return (
            f"{self.times:6.1f}x {tally.offered / tally.seconds:9.0f} {tally.rate:9.0f} "
            f"{self.share:6.2f} {tally.ms(50):8.1f} {tally.ms(99):8.1f} "
            f"{tally.refused / max(1, tally.offered):8.1%} "
            f"{tally.held_back / max(1, tally.offered):8.1%}  {self.wrong or 'ok'}"
        )


class Server:
    """Throughput for the processor time used."""

    def __init__(self, server: ServerProcess) -> None:
        assert server.process is not None
        self._stat = Path(f"/proc/{server.process.pid}/stat")

    def cpu_seconds(self) -> float:
        fields = self._stat.read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def worked(self, offer: Callable[[], Tally]) -> tuple[Tally, float]:
        """The counts of the calls, and how many were accepted in a second of processor time."""
        began = self.cpu_seconds()
        tally = offer()
        return tally, len(tally.took) / max(0.01, self.cpu_seconds() - began)


def step(times: float, tally: Tally, share: float, answered: float) -> Step:
    """`answered` is the share of what was answered in a second before and after."""
    wrong = []
    if share < RATE_MIN or answered < ANSWERED_MIN:
        wrong.append("throughput fell")
    if tally.failed:
        wrong.append(f"{len(tally.failed)} failed, as with {tally.failed[0]!r}")
    if tally.ms(99) > P99_MS_MAX:
        wrong.append("p99")
    return Step(times, tally, share, ", ".join(wrong))


def recovery_seconds(address: str, quiet_ms: float) -> float:
    """Seconds until ten calls in a row of a new client are fast enough."""
    started = time.monotonic()
    with queueber.connect(address) as client:
        good = 0
        while good < 10 and time.monotonic() < started + 60:
            began = time.monotonic()
            client.queue("after").add(b"x")
            good = good + 1 if 1000 * (time.monotonic() - began) < 3 * quiet_ms + 20 else 0
    return time.monotonic() - started


def quiet_ms(address: str) -> float:
    took = []
    with queueber.connect(address) as client:
        for _ in range(50):
            began = time.monotonic()
            client.queue("before").add(b"x")
            took.append(1000 * (time.monotonic() - began))
    return sorted(took)[45]


def not_kept(address: str, load: Load) -> str:
    """An error if the store does not have what was accepted; else empty."""
    with queueber.connect(address) as client:
        stored = client.queue().stats().ready
    least, most = ITEMS * load.accepted, ITEMS * (load.accepted + load.outstanding)
    return "" if least <= stored <= most else f"{least} items accepted, {stored} are stored"


def run(seconds: float, loads: tuple[float, ...] = (1.0, 2.0, 5.0)) -> bool:
    """Print the measurements; returns whether all were good enough."""
    with running_server("--durability", "os") as process:
        server, usual_ms = Server(process), quiet_ms(process.address)
        with closing(Load(process.address, CONNECTIONS, items=ITEMS, size=ITEM_BYTES)) as load:
            peak, before = server.worked(lambda: load.saturate(seconds))
            load.drain(10)
            capacity = peak.rate
            print(f"capacity: {capacity:.0f} calls/s of {ITEMS} items, {CONNECTIONS} connections;"
                  f" {before:.0f} a second of processor time")  # fmt: skip
            print(f"{'load':>7} {'offered':>9} {'accepted':>9} {'share':>6} {'p50 ms':>8} "
                  f"{'p99 ms':>8} {'refused':>8} {'held':>8}")  # fmt: skip
            steps = []
            for times in loads:
                rate = times * capacity
                tally, done = server.worked(lambda rate=rate: load.offer(rate, seconds))  # type: ignore[misc]
                load.drain(10)
                # The speed of the machine varies: compare with just before and just after.
                usual, after = server.worked(lambda: load.saturate(seconds / 2))
                load.drain(10)
                answered = 2 * tally.rate / (peak.rate + usual.rate)
                steps.append(step(times, tally, 2 * done / (before + after), answered))
                print(steps[-1].shown(), flush=True)
                peak, before = usual, after
            load.offer(5 * capacity, min(2.0, seconds))
            recovered = recovery_seconds(process.address, usual_ms)
            print(f"recovered in {recovered:.2f} s after a load of 5x")
            load.drain(10)
            wrong = not_kept(process.address, load)
            print(wrong or f"all {ITEMS * load.accepted} accepted items are stored")
    is_recovered = recovered <= RECOVERY_SECONDS_MAX
    return is_recovered and not wrong and not any(each.wrong for each in steps)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="at each load")
    return 0 if run(parser.parse_args().seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
