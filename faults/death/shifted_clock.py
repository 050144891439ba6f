"""A server whose wall clock is wrong.

    python -m faults.death.shifted_clock MS serve ...

runs `queueber serve ...` on a clock that is so many milliseconds ahead, or behind. SIGUSR1 sets it
an hour forward while the server runs, SIGUSR2 an hour back.
"""

import signal
import sys
import time

HOUR_MS = 3_600_000
FORWARD, BACK = signal.SIGUSR1, signal.SIGUSR2
_MS_NS = 1_000_000


def main() -> None:
    shift_ms, *arguments = sys.argv[1:]
    shift_ns = int(shift_ms) * _MS_NS
    true_time_ns = time.time_ns

    def step(number: int, _: object) -> None:
        nonlocal shift_ns
        shift_ns += (HOUR_MS if number == FORWARD else -HOUR_MS) * _MS_NS

    time.time_ns = lambda: true_time_ns() + shift_ns
    time.time = lambda: time.time_ns() / 1e9
    signal.signal(FORWARD, step)
    signal.signal(BACK, step)
    sys.argv = ["queueber", *arguments]
    from queueber.cli import main as queueber

    queueber()


if __name__ == "__main__":
    main()
