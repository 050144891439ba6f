"""This tree beside another one: the same benchmark in both, in turns, as ratios."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.measure import bench_parser, progress, scratch, start_report

_DESCRIPTION = """Run a benchmark of this tree and of another in turns, and compare: what a change
costs those who do not use it. The other tree is a checkout of some other version, e.g. made with
'git worktree add ../before HEAD~10'; it runs with the packages of this environment."""

_HERE = Path(__file__).parent.parent
_TABLES = {"engine": ("Engine", "synced"), "rpc": ("RPC", "clients")}
"""The table of each benchmark, and what its rows differ in beside call, items and bytes."""

Key = tuple[str, int, int, str]


def run_bench(bench: str, tree: Path, folder: Path, seconds: float) -> dict[Key, float]:
    """Items a second by call, items a call, bytes, and the kind of sync or client."""
    table, kind = _TABLES[bench]
    with tempfile.TemporaryDirectory(dir=folder.resolve()) as scratch_path:
        file = Path(scratch_path) / "figures.json"
        command = [
            sys.executable, "-m", f"bench.{bench}", "--repeat", "1", "--seconds", str(seconds),
            "--dir", scratch_path, "--json", str(file),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        subprocess.run(
            command, cwd=tree, env=environment, check=True, capture_output=True, timeout=600
        )
        rows = json.loads(file.read_text())["tables"][table]
    return {(r["call"], r["items"], r["bytes"], r[kind]): r["items/s"] for r in rows}


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("tree", type=Path, help="the other checkout")
    parser.add_argument("--bench", choices=_TABLES, default="engine", help="which to run")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long a round adds")
    parser.add_argument("--repeat", type=int, default=7, help="rounds in each tree")
    arguments = parser.parse_args()
    here: list[dict[Key, float]] = []
    there: list[dict[Key, float]] = []
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Against another tree", arguments, folder)
        for _ in bar.track(range(arguments.repeat), description="against"):
            other = arguments.tree.resolve()
            there.append(run_bench(arguments.bench, other, folder, arguments.seconds))
            here.append(run_bench(arguments.bench, _HERE, folder, arguments.seconds))
    rows: list[dict[str, object]] = []
    for key in here[0]:
        call, items, content_bytes, kind = key
        # Each pair ran back to back, so that the machine's mood falls out of the ratio.
        ratios = sorted(mine[key] / theirs[key] for mine, theirs in zip(here, there, strict=True))
        rows.append(
            {
                "call": call,
                "items": items,
                "bytes": content_bytes,
                _TABLES[arguments.bench][1]: kind,
                "here items/s": round(median(each[key] for each in here)),
                "there items/s": round(median(each[key] for each in there)),
                "ratio": median(ratios),
                "from": ratios[0],
                "to": ratios[-1],
            }
        )
    report.table("Here against there", rows)
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
