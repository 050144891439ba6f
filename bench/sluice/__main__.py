"""`python -m bench.sluice`: whether the gRPC door holds the goals that Sluice has published."""

import sys
from datetime import UTC, datetime

from bench.measure import bench_parser, scratch, stdout
from bench.peers.comparison import machine
from bench.peers.tables import PAGE, joined, replace_between, table
from bench.sluice.goals import Goal, goals

BEGIN, END = "<!-- sluice: written by python -m bench.sluice -->\n", "<!-- end of sluice -->\n"
_DESCRIPTION = """Measure the goals of Sluice on a server and a gateway of one process: calls come
at a steady pace over 8 connections, from a generator that takes little processor time. With --page
the result goes into docs/performance.md."""


def main() -> int:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run")
    parser.add_argument("--runs", type=int, default=5, help="of each measurement, and starts")
    parser.add_argument("--backlog", type=int, default=500_000, help="messages nobody reads")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    with scratch(arguments.dir) as folder:
        about = machine(folder)
        found = goals(folder, arguments.seconds, arguments.runs, arguments.backlog)
    text = _rendered(found, about)
    stdout().print(text, markup=False)
    if arguments.page:
        replace_between(PAGE, BEGIN, END, text)
    return 0 if all(each.is_held for each in found) else 1


def _rendered(found: list[Goal], about: dict[str, object]) -> str:
    taken = datetime.now(UTC).isoformat(timespec="minutes")
    rows = [[each.name, each.wanted, each.found, "yes" if each.is_held else "**no**"]
            for each in found]  # fmt: skip
    return joined(
        [
            f"Taken {taken} with `python -m bench.sluice --page`; "
            + ", ".join(f"{name} {value}" for name, value in about.items())
            + ".",
            table(["", "goal", "measured", "held"], rows),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
