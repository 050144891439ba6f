"""`python -m bench.peers`: compares Queueber with its peers in one run."""

import argparse
from pathlib import Path

from bench.measure import Shape, bench_parser, scratch
from bench.peers.comparison import (
    RESULTS,
    add_peers_option,
    lines,
    machine,
    new_result,
    prepared,
    publish,
    take,
)
from bench.peers.contender import spread
from bench.peers.contest import CALLERS, SIZES, Plan, started, turns
from bench.peers.page import show, write_page
from bench.peers.registry import PEERS
from bench.peers.results import Figures

_DESCRIPTION = """Compare Queueber with its alternatives: all servers run the whole time on
loopback, each is called through its usual Python client from its own process, and they are measured
in turn. Every item is added, leased and acknowledged. Missing Debian packages of the peers are
installed if the user may, and a newer NATS is built if Go is at hand. The result goes to
bench/results/ and, with --page, into docs/performance.md."""


def _arguments() -> argparse.Namespace:
    parser = bench_parser(_DESCRIPTION)
    add_peers_option(parser, PEERS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a short round")
    parser.add_argument("--repeat", type=int, default=3, help="short rounds of each kind")
    parser.add_argument(
        "--sustain", type=float, default=60.0, help="seconds at 1 KiB; half of them at 100 B"
    )
    parser.add_argument("--deep", type=int, default=5_000_000, help="items that wait")
    parser.add_argument(
        "--deep-seconds", type=float, default=20.0, help="that a peer may fill, and drain"
    )
    parser.add_argument("--probe-rounds", type=int, default=5, help="of 300 polls each")
    parser.add_argument("--no-limit", action="store_true", help="leave RocksDB alone out")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md and plots")
    return parser.parse_args()


def _plan(arguments: argparse.Namespace) -> Plan:
    sustain = {1024: arguments.sustain, 100: arguments.sustain / 2}
    return Plan(
        seconds=arguments.seconds,
        repeat=arguments.repeat,
        sustain_seconds=sustain if arguments.sustain else {},
        deep_items=arguments.deep,
        deep_seconds=arguments.deep_seconds,
        probe_rounds=arguments.probe_rounds,
    )


def _limits(folder: Path, repeat: int) -> dict[str, dict[str, Figures]]:
    # Imported here: it needs the store of this tree; the rest also measures older clients.
    from bench.peers.limit import measure_limits

    limits: dict[str, dict[str, Figures]] = {}
    for shape in [Shape(items, size) for size in SIZES for items in CALLERS]:
        for yardstick, columns in measure_limits(folder, shape, repeat).items():
            of_yardstick = limits.setdefault(yardstick, {})
            of_yardstick |= {name: spread(rates) for name, rates in columns.items()}
    return limits


def main() -> None:
    arguments = _arguments()
    peers, left_out = prepared(arguments.peers, PEERS)
    plan = _plan(arguments)
    with scratch(arguments.dir) as folder:
        about = machine(folder)
        with started(peers, folder) as contenders:
            take("peers", turns(contenders, plan))
            measured = lines(contenders)
        limits = {} if arguments.no_limit else _limits(folder, plan.repeat)
    result = new_result("bench.peers", about, measured, left_out, limits)
    publish(result, arguments.json or RESULTS / "peers.json", show)
    if arguments.page:
        write_page(result)


if __name__ == "__main__":
    main()
