"""Offer a server more than it can take: what it does with it, and how soon it is itself again."""

import argparse
import sys
import time
from contextlib import closing
from dataclasses import dataclass

import queueber
from faults.load import Load, Tally
from queueber.testing import running_server

CONNECTIONS = 32
ITEMS, ITEM_BYTES = 20, 100
RATE_MIN = 0.7
"""The share of the capacity that must be left at any load."""
P99_MS_MAX = 2000.0
RECOVERY_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    times: float
    tally: Tally
    wrong: str

    def shown(self, capacity: float) -> str:
        tally = self.tally
        return (
            f"{self.times:6.1f}x {tally.offered / tally.seconds:9.0f} {tally.rate:9.0f} "
            f"{tally.rate / capacity:6.2f} {tally.ms(50):8.1f} {tally.ms(99):8.1f} "
            f"{tally.refused / max(1, tally.offered):8.1%} "
            f"{tally.held_back / max(1, tally.offered):8.1%}  {self.wrong or 'ok'}"
        )


def capacity_of(load: Load, seconds: float) -> float:
    """Calls a second that are answered when always some are waiting: the best of a few rates."""
    best, rate = 0.0, 500.0
    while True:
        tally = load.offer(rate, seconds)
        load.drain(10)
        best = max(best, tally.rate)
        if tally.rate < 0.8 * rate:
            return best
        rate *= 1.6


def step(load: Load, capacity: float, times: float, seconds: float) -> Step:
    tally = load.offer(times * capacity, seconds)
    wrong = []
    if times >= 1 and tally.rate < RATE_MIN * capacity:
        wrong.append(f"throughput fell to {tally.rate / capacity:.2f}")
    if tally.ms(99) > P99_MS_MAX:
        wrong.append(f"p99 {tally.ms(99):.0f} ms")
    return Step(times, tally, ", ".join(wrong))


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
    with running_server("--durability", "os") as server:
        usual_ms = quiet_ms(server.address)
        with closing(Load(server.address, CONNECTIONS, items=ITEMS, size=ITEM_BYTES)) as load:
            capacity = capacity_of(load, min(2.0, seconds))
            print(f"capacity: {capacity:.0f} calls/s of {ITEMS} items, {CONNECTIONS} connections")
            print(f"{'load':>7} {'offered':>9} {'accepted':>9} {'share':>6} {'p50 ms':>8} "
                  f"{'p99 ms':>8} {'refused':>8} {'held':>8}")  # fmt: skip
            steps = []
            for times in loads:
                steps.append(step(load, capacity, times, seconds))
                print(steps[-1].shown(capacity), flush=True)
                load.drain(10)
            load.offer(5 * capacity, min(2.0, seconds))
        recovered = recovery_seconds(server.address, usual_ms)
        print(f"recovered in {recovered:.2f} s after a load of 5x")
    return recovered <= RECOVERY_SECONDS_MAX and not any(each.wrong for each in steps)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="at each load")
    return 0 if run(parser.parse_args().seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
