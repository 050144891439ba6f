"""Kills a server at random under work on a routed queue, and checks every event."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

from faults.routes.run import run

_SHOWN_MAX = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.routes", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000))
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.kills} kills", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        told = run(Path(folder), given.kills, given.seed)
    print(
        f"{told.kills} kills: {told.items} items added, {told.events} events, "
        f"{len(told.wrong)} violations; in {time.monotonic() - began:.0f} s"
    )
    for name, count in sorted(told.mirrored.items()):
        print(f"    {name}: {count}")
    for wrong in told.wrong[:_SHOWN_MAX]:
        print(wrong)
    return 1 if told.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
