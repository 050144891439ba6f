"""`python -m bench.peers`: compares Queueber with its peers in one run."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.measure import Shape, bench_parser, filesystem, fsync_p50_us, progress, scratch
from bench.peers.contest import CALLERS, SIZES, Contender, Plan, spread, started, turns
from bench.peers.page import show, write_page
from bench.peers.peer import Peer, Unavailable
from bench.peers.registry import PEERS
from bench.peers.results import Figures, Result

_DESCRIPTION = """Compare Queueber with its alternatives: all servers run the whole time on
loopback, each is called through its usual Python client from its own process, and they are measured
in turn. Every item is added, leased and acknowledged. Missing Debian packages of the peers are
installed if the user may, and a newer NATS is built if Go is at hand. The result goes to
bench/results/ and, with --page, into docs/performance.md."""

_HERE = Path(__file__).parent.parent
RESULTS = _HERE / "results" / "peers.json"


def _arguments() -> argparse.Namespace:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="who")
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


def _machine(folder: Path) -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "memory GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "disk": filesystem(folder),
        "fdatasync p50 µs": round(fsync_p50_us(folder)),
        "python": platform.python_version(),
        "rocksdict": version("rocksdict"),
        "pycapnp": version("pycapnp"),
    }


def _line(contender: Contender) -> dict[str, object]:
    peer = contender.peer
    return {
        "version": peer.version(),
        "client": f"{peer.library} {version(peer.library)}",
        "synced": peer.durability,
        "notes": peer.notes,
        "figures": {
            **{name: spread(rounds) for name, rounds in contender.rounds.items()},
            **contender.figures,
        },
    }


def _limits(folder: Path, repeat: int) -> dict[str, dict[str, Figures]]:
    # Imported here: it needs the store of this tree; the rest also measures older clients.
    from bench.peers.limit import measure_limits

    limits: dict[str, dict[str, Figures]] = {}
    for shape in [Shape(items, size) for size in SIZES for items in CALLERS]:
        for yardstick, columns in measure_limits(folder, shape, repeat).items():
            of_yardstick = limits.setdefault(yardstick, {})
            of_yardstick |= {name: spread(rates) for name, rates in columns.items()}
    return limits


def _prepared(peers: Iterable[Peer]) -> tuple[list[Peer], dict[str, str]]:
    """The peers that can be measured here, with their servers installed, and why others cannot."""
    present: list[Peer] = []
    left_out: dict[str, str] = {}
    for peer in peers:
        try:
            peer.version()
            present.append(peer)
        except Unavailable as reason:
            left_out[peer.name] = str(reason)
            print(f"{peer.name} is left out: {reason}", file=sys.stderr)
    return present, left_out


def main() -> None:
    arguments = _arguments()
    peers, left_out = _prepared(PEERS[name] for name in PEERS if name in arguments.peers)
    plan = _plan(arguments)
    with scratch(arguments.dir) as folder:
        machine = _machine(folder)
        with started(peers, folder) as contenders, progress() as bar:
            planned = list(turns(contenders, plan))
            task = bar.add_task("peers", total=len(planned))
            for name, run in planned:
                bar.update(task, description=name)
                run()
                bar.advance(task)
            lines = {each.peer.name: _line(each) for each in contenders}
        limits = {} if arguments.no_limit else _limits(folder, plan.repeat)
    result = Result(
        taken_at=datetime.now(UTC).isoformat(timespec="minutes"),
        command=" ".join(["python -m bench.peers", *sys.argv[1:]]),
        machine=machine,
        peers=lines,
        limits=limits,
        left_out=left_out,
    )
    show(result)
    file = arguments.json or RESULTS
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result.shown(), indent=1) + "\n")
    if arguments.page:
        write_page(result)


if __name__ == "__main__":
    main()
