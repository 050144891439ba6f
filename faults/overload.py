"""Offer a server more than it can take: what it does with it, and how soon it is itself again."""

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
"""The share of the capacity that must be left at any load. Capacity is what the server answers in a
second of processor time, so that it does not matter who else is at work on the machine."""
P99_MS_MAX = 4000.0
RECOVERY_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    times: float
    tally: Tally
    share: float
    """Of the capacity."""
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
    """What it does for the processor time that it takes."""

    def __init__(self, server: ServerProcess) -> None:
        assert server.process is not None
        self._stat = Path(f"/proc/{server.process.pid}/stat")

    def cpu_seconds(self) -> float:
        fields = self._stat.read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def worked(self, offer: Callable[[], Tally]) -> tuple[Tally, float]:
        """What became of the calls, and how many were accepted in a second of processor time."""
        began = self.cpu_seconds()
        tally = offer()
        return tally, len(tally.took) / max(0.01, self.cpu_seconds() - began)


def step(times: float, tally: Tally, share: float) -> Step:
    wrong = []
    if share < RATE_MIN:
        wrong.append("throughput fell")
    if tally.ms(99) > P99_MS_MAX:
        wrong.append("p99")
    return Step(times, tally, share, ", ".join(wrong))


def recovery_seconds(address: str, quiet_ms: float) -> float:
    """Until ten calls of a new client in a row take no longer than they should."""
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


def run(seconds: float, loads: tuple[float, ...] = (1.0, 2.0, 5.0)) -> bool:
    """Print what was measured; whether all of it was in order."""
    with running_server("--durability", "os") as process:
        server, usual_ms = Server(process), quiet_ms(process.address)
        with closing(Load(process.address, CONNECTIONS, items=ITEMS, size=ITEM_BYTES)) as load:
            peak, before = server.worked(lambda: load.saturate(seconds))
            load.drain(10)
            print(f"capacity: {peak.rate:.0f} calls/s of {ITEMS} items, {CONNECTIONS} connections;"
                  f" {before:.0f} a second of processor time")  # fmt: skip
            print(f"{'load':>7} {'offered':>9} {'accepted':>9} {'share':>6} {'p50 ms':>8} "
                  f"{'p99 ms':>8} {'refused':>8} {'held':>8}")  # fmt: skip
            steps = []
            for times in loads:
                rate = times * peak.rate
                tally, done = server.worked(lambda rate=rate: load.offer(rate, seconds))  # type: ignore[misc]
                load.drain(10)
                # The machine is not the same for long: compare with just before and just after.
                _, after = server.worked(lambda: load.saturate(seconds / 2))
                load.drain(10)
                steps.append(step(times, tally, 2 * done / (before + after)))
                print(steps[-1].shown(), flush=True)
                before = after
            load.offer(5 * peak.rate, min(2.0, seconds))
        recovered = recovery_seconds(process.address, usual_ms)
        print(f"recovered in {recovered:.2f} s after a load of 5x")
    return recovered <= RECOVERY_SECONDS_MAX and not any(each.wrong for each in steps)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="at each load")
    return 0 if run(parser.parse_args().seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
