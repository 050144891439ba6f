"""Compares this tree with another commit: the columns of `bench.peers`, and the CPU time of the
engine, as ratios."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.engine import engine_queue
from bench.measure import SECOND_NS, Shape, bench_parser, progress, scratch, start_report
from bench.page import write_tables
from bench.peers.contender import Contender
from bench.peers.contest import (
    CALLERS,
    SIZES,
    Plan,
    run_deep,
    run_short,
    run_sustained,
    started,
)
from bench.peers.ours import Queueber

_DESCRIPTION = """Measure Queueber of this working tree and of another commit, and print the ratio
for each column, to see what a change costs or gains before it is merged. Server and client are
those of each tree; the callers are those of this one. Both servers run the whole time, and each
round of a column is measured in one tree right after the other, so that both meet the same
machine. The columns of the engine are items in a second of CPU time, unsynced, in a queue that has
no caps, schedules, routes or batches: with --engine only these, which a busy machine disturbs
least. So what a queue pays for what it does not use is seen by comparing with a commit of before
it existed."""

_HERE = Path(__file__).parent.parent

_TABLE = "Above 1: this tree is better"
_ENGINE = "engine"
_ENGINE_ITEMS = 10_000

Figures = dict[str, float]
Step = dict[str, float | str]
"""What is measured in one go, as it is sent to the process of a tree."""


# --- in the process of a tree ---------------------------------------------------------------------


def _take_steps(folder: Path) -> None:
    """Read a step from each line, and answer with its figures."""
    with started([Queueber()], folder) as (contender,):
        for line in sys.stdin:
            step = json.loads(line)
            if step["kind"] == _ENGINE:
                sys.stdout.write(json.dumps(_engine_round(folder, step)) + "\n")
                sys.stdout.flush()
                continue
            contender.rounds.clear()
            contender.figures.clear()
            _run(contender, **step)
            sys.stdout.write(json.dumps(_found(contender)) + "\n")
            sys.stdout.flush()


def _run(contender: Contender, kind: str, size: int, items: int, seconds: float) -> None:
    if kind == "short":
        run_short(contender, Shape(items, size), seconds)
    elif kind == "sustained":
        run_sustained(contender, size, seconds)
    else:
        plan = Plan(seconds, 1, {}, deep_items=items, deep_seconds=seconds, probe_rounds=1)
        run_deep(contender, plan, to_the_end=True)


def _engine_round(folder: Path, step: Step) -> Figures:
    """Items in a second of CPU time of this thread, through the whole life of some items."""
    items, count = int(step["items"]), _ENGINE_ITEMS
    contents = [b"x" * int(step["size"])] * items
    figures: Figures = {}
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as queue:
        calls: dict[str, Callable[[], int]] = {
            "add": lambda: queue.add(contents),
            "poll": lambda: queue.poll(items),
            "complete": lambda: queue.complete([b""] * items),
        }
        for name, call in calls.items():
            began_ns = time.thread_time_ns()
            for _ in range(count // items):
                call()
            seconds = (time.thread_time_ns() - began_ns) / SECOND_NS
            figures[f"engine, CPU: {name}, {items} a call"] = count / seconds
    return figures


def _found(contender: Contender) -> Figures:
    """Items a second; milliseconds inverted, so that more is always better."""
    found = {column: rates[-1] for column, rates in contender.rounds.items()}
    for column, figures in contender.figures.items():
        for name, figure in figures.items():
            if name == "items/s":
                found[column] = figure
            elif name.endswith(" ms") and figure:
                found[f"{column}: {name}"] = 1 / figure
    return found


# --- in the process that compares -----------------------------------------------------------------


class _Tree:
    """The process of one tree."""

    def __init__(self, packages: Path, folder: Path) -> None:
        folder.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.quick", "--steps-in", str(folder.resolve())],
            cwd=packages,
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, step: Step) -> Figures:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("the process of a tree has ended; its error is above")
        figures: Figures = json.loads(answer)
        return figures

    def __enter__(self) -> "_Tree":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / "tree"
        add = ["git", "worktree", "add", "--detach", str(path), commit]
        done = subprocess.run(add, cwd=_HERE, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr.strip())
        try:
            yield path
        finally:
            remove = ["git", "worktree", "remove", "--force", str(path)]
            subprocess.run(remove, cwd=_HERE, check=True, capture_output=True)


@contextlib.contextmanager
def _packages(tree: Path) -> Iterator[Path]:
    """A PYTHONPATH with the `queueber` of a tree and the `bench` of this one."""
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent)
        (path / "queueber").symlink_to(tree / "queueber")
        (path / "bench").symlink_to(_HERE / "bench")
        yield path


def _steps(arguments: Namespace) -> list[Step]:
    seconds = arguments.seconds
    engine: list[Step] = [
        {"kind": _ENGINE, "size": 100, "items": items, "seconds": 0.0} for items in (1, 100)
    ]
    if arguments.engine:
        return engine * (2 * int(arguments.repeat))
    one_round = engine + [
        {"kind": "short", "size": size, "items": items, "seconds": seconds}
        for size in SIZES
        for items in CALLERS
    ]
    one_round += [
        {"kind": "sustained", "size": size, "items": 0, "seconds": 2 * seconds} for size in SIZES
    ]
    deep: Step = {"kind": "deep", "size": 0, "items": 50_000, "seconds": seconds}
    repeat: int = arguments.repeat
    return one_round * repeat + [deep] * min(3, repeat)


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("commit", nargs="?", default="HEAD", help="what to compare with")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a short round")
    parser.add_argument("--repeat", type=int, default=7, help="rounds of each column")
    parser.add_argument("--engine", action="store_true", help="only the engine, by CPU time")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    parser.add_argument("--steps-in", type=Path, help="be the process of a tree, in that folder")
    arguments = parser.parse_args()
    if arguments.page and not arguments.engine:
        parser.error("--page is for --engine: the page has no place for the other columns")
    if arguments.steps_in:
        _take_steps(arguments.steps_in)
        return
    ratios: dict[str, list[float]] = {}
    with (
        scratch(arguments.dir) as folder,
        _checkout(arguments.commit) as tree,
        _packages(tree) as theirs,
        _packages(_HERE) as ours,
        tempfile.TemporaryDirectory(dir=folder) as own,
        _Tree(theirs, Path(own) / "theirs") as there,
        _Tree(ours, Path(own) / "ours") as here,
        progress() as bar,
    ):
        report = start_report(f"This tree against {arguments.commit}", arguments, folder)
        for number, step in enumerate(bar.track(_steps(arguments), description="in turn")):
            # The second finds disk and caches as the first left them, so the order alternates.
            first, second = (there, here) if number % 2 else (here, there)
            found = {first: first.run(step), second: second.run(step)}
            for column, figure in found[here].items():
                if its := found[there].get(column):
                    ratios.setdefault(column, []).append(figure / its)
    rows: list[dict[str, object]] = [
        {"column": column, "ratio": median(each), "from": min(each), "to": max(each)}
        for column, each in ratios.items()
    ]
    report.table(_TABLE, rows)
    if arguments.page:
        write_tables("engine against before", "quick", report, (_TABLE,))
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
