"""Shared by all benchmarks: the data directory, timing, and reports."""

import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

SECOND_NS = 1_000_000_000
_FSYNC_SAMPLES = 50
_FSYNC_BYTES = 4096
_DISKLESS = ("tmpfs", "ramfs")


def bench_parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(".bench"), help="directory for data; emptied afterwards"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return parser


@contextlib.contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A directory on a real disk, deleted afterwards."""
    is_ours = not parent.exists()
    parent.mkdir(parents=True, exist_ok=True)
    try:
        kind = filesystem(parent)
        if kind in _DISKLESS:
            raise SystemExit(f"{parent} is {kind}, where a sync costs nothing; choose a --dir")
        with tempfile.TemporaryDirectory(prefix="bench-", dir=parent) as folder:
            yield Path(folder)
    finally:
        if is_ours:
            shutil.rmtree(parent, ignore_errors=True)


def filesystem(path: Path) -> str:
    """The file system type of the path, by the longest mount point that is a parent."""
    resolved = path.resolve()
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount_point, mount_kind, *_ = line.split()
        if resolved.is_relative_to(mount_point) and len(mount_point) > len(best):
            best, kind = mount_point, mount_kind
    return kind


def fsync_p50_us(folder: Path) -> float:
    """The time to append a page to a file and sync it: the minimum of a durable call."""
    samples = []
    file = folder / "fsync"
    with file.open("wb", buffering=0) as stream:
        for _ in range(_FSYNC_SAMPLES):
            stream.write(bytes(_FSYNC_BYTES))
            started = time.perf_counter_ns()
            os.fdatasync(stream.fileno())
            samples.append(time.perf_counter_ns() - started)
    file.unlink()
    return percentile_us(samples, 0.5)


def percentile_us(samples_ns: Sequence[int], fraction: float) -> float:
    """By nearest rank; NaN without samples."""
    if not samples_ns:
        return math.nan
    ordered = sorted(samples_ns)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)] / 1000


@dataclass(frozen=True, slots=True)
class Shape:
    """The number and size of items in a call."""

    items: int
    content_bytes: int

    def contents(self) -> list[bytes]:
        # Random, so that compression does not make the disk look faster than it is.
        return [os.urandom(self.content_bytes) for _ in range(self.items)]


SHAPES = (Shape(1, 100), Shape(1, 1024), Shape(100, 100), Shape(100, 1024))
OPERATIONS = ("add", "poll", "remove")


@dataclass(frozen=True, slots=True)
class Round:
    """Measurements of calls of one kind, one after the other or concurrent."""

    items: int
    elapsed_ns: int
    calls_ns: Sequence[int]
    """Seconds that each call took."""

    @property
    def items_per_second(self) -> float:
        return self.items * SECOND_NS / self.elapsed_ns if self.elapsed_ns else math.nan


@dataclass(frozen=True, slots=True)
class Rate:
    """Repeated rounds: their medians and their spread."""

    items_per_second: float
    spread: float
    """The difference of the fastest and the slowest round, as a fraction of the median."""
    p50_us: float
    p99_us: float
    calls: int

    def shown(self) -> dict[str, object]:
        return {
            "items/s": round(self.items_per_second),
            "spread": f"{self.spread:.0%}",
            "p50 µs": round(self.p50_us),
            "p99 µs": round(self.p99_us),
            "calls": self.calls,
        }


def rate_of(rounds: Sequence[Round]) -> Rate:
    rates = [each.items_per_second for each in rounds]
    samples = [ns for each in rounds for ns in each.calls_ns]
    return Rate(
        items_per_second=median(rates),
        spread=(max(rates) - min(rates)) / median(rates),
        p50_us=percentile_us(samples, 0.5),
        p99_us=percentile_us(samples, 0.99),
        calls=len(samples),
    )


@dataclass(slots=True)
class Report:
    """Parameters, versions and tables, for people and as JSON."""

    title: str
    parameters: dict[str, object]
    facts: dict[str, object]
    tables: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    verdicts: dict[str, bool] = field(default_factory=dict)

    def table(self, name: str, rows: list[dict[str, object]]) -> None:
        """Print a table, and keep it for the JSON."""
        self.tables[name] = rows
        shown = Table(title=name, title_justify="left", title_style="bold")
        for column, value in rows[0].items():
            shown.add_column(column, justify="left" if isinstance(value, str) else "right")
        for row in rows:
            shown.add_row(*(_cell(value) for value in row.values()))
        stdout().print(shown)

    def verdict(self, claim: str, *, is_met: bool) -> None:
        self.verdicts[claim] = is_met
        stdout().print(f"{'PASS' if is_met else 'FAIL'}  {claim}", highlight=False)

    @property
    def exit_code(self) -> int:
        """1 if a verdict is bad."""
        return 0 if all(self.verdicts.values()) else 1

    def write_json(self, file: Path | None) -> None:
        if file is not None:
            shown = {
                "title": self.title, "parameters": self.parameters, "facts": self.facts,
                "tables": self.tables, "verdicts": self.verdicts,
            }  # fmt: skip
            file.write_text(json.dumps(shown, indent=2, default=str) + "\n")


def start_report(
    title: str,
    arguments: argparse.Namespace,
    folder: Path,
    *,
    packages: Sequence[str] = ("rocksdict", "pycapnp", "queueber"),
    programs: Mapping[str, str] | None = None,
) -> Report:
    """Print what will be measured, with the versions of packages and programs."""
    facts: dict[str, object] = {
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        **(programs or {}),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "disk": filesystem(folder),
        "fsync p50 µs": round(fsync_p50_us(folder)),
    }
    report = Report(title, vars(arguments), facts)
    console = stdout()
    console.print(f"[bold]{title}[/bold]")
    for label, values in (("parameters", report.parameters), ("measured on", facts)):
        listed = ", ".join(f"{name} {value}" for name, value in values.items())
        console.print(f"{label}: {listed}", highlight=False, soft_wrap=True)
    return report


def progress() -> Progress:
    """A progress bar on standard error, so that the figures can be piped."""
    return Progress(console=Console(stderr=True), transient=sys.stderr.isatty())


def stdout() -> Console:
    """The terminal, or a pipe."""
    # A pipe has no width; do not cut the table.
    return Console(width=None if sys.stdout.isatty() else 160)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
