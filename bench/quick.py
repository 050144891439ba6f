"""Compares this tree with another commit: the columns of `bench.peers`, as ratios."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.measure import bench_parser, progress, scratch, start_report

_DESCRIPTION = """Measure Queueber of this working tree and of another commit in turn, and print
the ratio for each column, to see what a change costs or gains before it is merged. Server and
client are those of each tree; the callers are those of this one."""

_HERE = Path(__file__).parent.parent
_RUN_SECONDS_MAX = 300

Figures = dict[str, float]


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


def _measure(packages: Path, folder: Path, seconds: float) -> Figures:
    """Items a second; other figures inverted if less is better."""
    with tempfile.TemporaryDirectory(dir=folder.resolve()) as own:
        file = Path(own) / "figures.json"
        command = [
            sys.executable, "-m", "bench.peers", "--peers", "queueber", "--no-limit",
            "--repeat", "1", "--seconds", str(seconds), "--sustain", str(3 * seconds),
            "--deep", "50000", "--probe-rounds", "1", "--dir", own, "--json", str(file),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(packages)}
        done = subprocess.run(
            command, cwd=packages, env=environment, check=False, capture_output=True, text=True,
            timeout=_RUN_SECONDS_MAX,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        figures = json.loads(file.read_text())["peers"]["Queueber"]["figures"]
    found: Figures = {}
    for column, of_column in figures.items():
        for name, figure in of_column.items():
            if name == "items/s":
                found[column] = figure
            elif name.endswith(" ms") and figure:
                found[f"{column}: {name}"] = 1 / figure
    return found


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("commit", nargs="?", default="HEAD", help="what to compare with")
    parser.add_argument("--seconds", type=float, default=0.6, help="of a short round")
    parser.add_argument("--repeat", type=int, default=3, help="rounds in each tree")
    arguments = parser.parse_args()
    here: list[Figures] = []
    there: list[Figures] = []
    with (
        scratch(arguments.dir) as folder,
        _checkout(arguments.commit) as tree,
        _packages(tree) as theirs,
        _packages(_HERE) as ours,
        progress() as bar,
    ):
        report = start_report(f"This tree against {arguments.commit}", arguments, folder)
        for number in bar.track(range(arguments.repeat), description="in turn"):
            turns = [(theirs, there), (ours, here)]
            # The second run finds disk and caches as the first left them, so the order alternates.
            for packages, figures in turns if number % 2 else reversed(turns):
                figures.append(_measure(packages, folder, arguments.seconds))
    rows: list[dict[str, object]] = []
    for column in here[0]:
        # The two runs of a pair follow each other, so that the ratio depends less on the machine.
        ratios = sorted(mine[column] / its[column] for mine, its in zip(here, there, strict=True))
        rows.append(
            {
                "column": column,
                "ratio": median(ratios),
                "from": ratios[0],
                "to": ratios[-1],
            }
        )
    report.table("Above 1: this tree is better", rows)
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
