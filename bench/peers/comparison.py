"""A comparison from its command line to its file, whatever is compared."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from bench.measure import filesystem, fsync_p50_us, progress
from bench.peers.contender import P99, Contender, Turn, spread
from bench.peers.peer import Program, Unavailable
from bench.peers.results import Figures, Result

RESULTS = Path(__file__).parents[1] / "results"

ProgramT = TypeVar("ProgramT", bound=Program)


def add_peers_option(parser: argparse.ArgumentParser, peers: Mapping[str, Program]) -> None:
    """`--peers`: names with commas or spaces between them."""

    def names(text: str) -> list[str]:
        listed = [name for name in text.split(",") if name]
        for name in listed:
            if name not in peers:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(peers)}")
        return listed

    parser.add_argument(
        "--peers", nargs="*", type=names, default=[list(peers)], help=f"who: {','.join(peers)}"
    )


def prepared(
    chosen: Iterable[Sequence[str]], peers: Mapping[str, ProgramT]
) -> tuple[list[ProgramT], dict[str, str]]:
    """The peers that can be measured here, with their servers installed, and why others cannot."""
    names = {name for each in chosen for name in each}
    present: list[ProgramT] = []
    left_out: dict[str, str] = {}
    for peer in (peers[name] for name in peers if name in names):
        try:
            peer.version()
            present.append(peer)
        except Unavailable as reason:
            left_out[peer.name] = str(reason)
            print(f"{peer.name} is left out: {reason}", file=sys.stderr)
    return present, left_out


def machine(folder: Path) -> dict[str, object]:
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


def take(title: str, turns: Iterable[Turn]) -> None:
    """Take all turns, with a progress bar."""
    planned = list(turns)
    with progress() as bar:
        task = bar.add_task(title, total=len(planned))
        for name, run in planned:
            bar.update(task, description=name)
            run()
            bar.advance(task)


def lines(contenders: Iterable[Contender]) -> dict[str, dict[str, object]]:
    return {each.peer.name: _line(each) for each in contenders}


def _line(contender: Contender) -> dict[str, object]:
    peer = contender.peer
    return {
        "version": peer.version(),
        "client": f"{peer.library} {version(peer.library)}" if peer.library else "the generator",
        "synced": peer.durability,
        "notes": peer.notes,
        "figures": {
            **{name: spread(rounds) for name, rounds in contender.rounds.items()},
            **{name: spread(rounds, P99) for name, rounds in contender.latencies_ms.items()},
            **contender.figures,
        },
    }


def new_result(
    module: str,
    about: dict[str, object],
    peers: dict[str, dict[str, object]],
    left_out: dict[str, str],
    limits: dict[str, dict[str, Figures]] | None = None,
) -> Result:
    return Result(
        taken_at=datetime.now(UTC).isoformat(timespec="minutes"),
        command=" ".join([f"python -m {module}", *sys.argv[1:]]),
        machine=about,
        peers=peers,
        limits=limits or {},
        left_out=left_out,
    )


def publish(result: Result, file: Path, show: Callable[[Result], None]) -> None:
    """Write the result to its file, and print it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result.shown(), indent=1) + "\n")
    show(result)
