"""Kills a server and its clients and changes clocks at random, and checks all answers."""

import argparse
import sys
import time
from random import SystemRandom

from faults.death.run import Row, Told, run
from faults.history import Outcome

_SHOWN_MAX = 20


def shown(name: str, row: Row) -> str:
    verdict = f"{len(row.wrong)} violations" if row.wrong else "ok"
    calls = "".join(f"{row.calls[outcome]:9}" for outcome in Outcome)
    return f"{name:27}{row.count or '':>6}{calls}  {verdict}"


def table(told: Told) -> str:
    head = f"{'fault':27}{'count':>6}{'ok':>9}{'refused':>9}{'unknown':>9}  verdict"
    total = Row(sum(row.count for row in told.rows.values()))
    for row in told.rows.values():
        total.calls += row.calls
        total.wrong += row.wrong
    return "\n".join([head, *(shown(*each) for each in told.rows.items()), shown("all", total)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.death", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=200, help="kills of the server; other faults are fewer"
    )
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000))
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.kills} kills", flush=True)
    began = time.monotonic()
    told = run(given.kills, given.seed)
    print(table(told))
    print(
        f"{told.acknowledged('add')} items added, {told.acknowledged('remove', 'complete')} ended; "
        f"{told.messages('publish', 'together')} messages published, {told.messages('pushed')} "
        f"pushed in order, {told.moved} moved together; in {time.monotonic() - began:.0f} s"
    )
    for wrong in told.wrong[:_SHOWN_MAX]:
        print(wrong)
    return 1 if told.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
