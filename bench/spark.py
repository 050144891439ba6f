"""Loading from Spark: the methods bulk and rpc, and PostgreSQL's COPY, from the same executors."""

import argparse
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median

from bench.measure import Report, bench_parser, progress, scratch, start_report
from bench.postgres import postgres_binaries, postgres_version, running_postgres
from bench.resident import resident_mb
from bench.spark_frame import CORES, spark_session
from bench.spark_loads import CONTENDERS, Loads
from queueber.spark import QueueberDataSource

_DESCRIPTION = f"""Load the same generated rows from the same Spark (local[{CORES}]) with each
contender in turn, for contents of each length. bulk: Queueber, with SST files that are linked into
the server's store. stream: the same, with the files sent through RPC as from another machine. rpc:
Queueber with method=rpc. copy: PostgreSQL, a COPY in the binary format for each task, into a table
with a primary key and the index that a queue polls from; the script starts its own cluster from
Debian's package (root installs it if it is missing), with fsync and synchronous commits. noop:
Spark generates the rows and drops them; no contender can be faster. arrow: Spark passes them to
Python, which drops them; no contender in Python can be faster. Each store is new, is asked for the
number of its rows afterwards, and has the disk to itself at the start. Then load --memory-rows of
200 B and a tenth of them, and compare the server's resident memory."""

_MEMORY_CONTENT_BYTES = 200
_WARM_UP_ROWS = 100_000
_WARM_UP_CONTENT_BYTES = 200

_RATIOS = (
    ("bulk", "rpc", 5.0),
    ("bulk", "copy", 1.0),
    ("stream", "rpc", None),
    ("stream", "copy", None),
    ("rpc", "copy", None),
    ("bulk", "arrow", None),
)
"""Which methods are compared, and the lowest ratio allowed."""
_MEMORY_GROWTH_MB_MAX = 64.0
"""Allowed growth with ten times the rows; their contents are 1,800 MB more."""
_MEMORY_TELLING = 4

# --- speed ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Speed:
    """Loads of one kind."""

    content_bytes: int
    contender: str
    rows: int
    seconds: list[float] = field(default_factory=list)

    @property
    def rows_per_second(self) -> float:
        return self.rows / median(self.seconds)

    def shown(self) -> dict[str, object]:
        middle = median(self.seconds)
        spread = (max(self.seconds) - min(self.seconds)) / middle
        return {
            "contents": f"{self.content_bytes:,} B",
            "contender": self.contender,
            "rows": self.rows,
            "seconds": middle,
            "rows/s": round(self.rows_per_second),
            "MB/s": round(self.rows_per_second * self.content_bytes / 1e6),
            "spread": f"{spread:.0%}" if len(self.seconds) > 1 else "-",
        }


def _measure_speed(loads: Loads, arguments: argparse.Namespace) -> list[Speed]:
    rows_of = dict.fromkeys(CONTENDERS, arguments.rows)
    rows_of["rpc"] = arguments.rpc_rows or arguments.rows
    speeds = [
        Speed(content_bytes, contender, rows_of[contender])
        for content_bytes in arguments.content_bytes
        for contender in arguments.contenders
    ]
    with progress() as bar:
        turns = speeds * arguments.repeat
        task = bar.add_task("warm up", total=len(arguments.contenders) + len(turns))
        for contender in arguments.contenders:
            # Compile code, start Python processes and import modules before the measurement.
            loads.run(contender, min(_WARM_UP_ROWS, rows_of[contender]), _WARM_UP_CONTENT_BYTES)
            bar.advance(task)
        for each in turns:
            label = f"{each.contender}: {each.rows:,} x {each.content_bytes:,} B"
            bar.update(task, description=label)
            each.seconds.append(loads.run(each.contender, each.rows, each.content_bytes))
            bar.advance(task)
    return speeds


def _report_speed(report: Report, speeds: list[Speed]) -> None:
    report.table("Loads", [each.shown() for each in speeds])
    rows: list[dict[str, object]] = []
    verdicts: list[tuple[str, bool]] = []
    for content_bytes in dict.fromkeys(each.content_bytes for each in speeds):
        found = {each.contender: each for each in speeds if each.content_bytes == content_bytes}
        for over, under, least in _RATIOS:
            if over not in found or under not in found:
                continue
            ratio = found[over].rows_per_second / found[under].rows_per_second
            contents, name = f"{content_bytes:,} B", f"{over} / {under}"
            # If the method rpc loads fewer rows, say so.
            counts = " / ".join(dict.fromkeys(f"{found[who].rows:,}" for who in (over, under)))
            rows.append({"contents": contents, "rows/s of": name, "rows": counts, "ratio": ratio})
            if least:
                claim = f"{contents}, {counts} rows: {name} is at least {least:g}: {ratio:.2f}"
                verdicts.append((claim, ratio >= least))
    if rows:
        report.table("Ratios", rows)
    for claim, is_met in verdicts:
        report.verdict(claim, is_met=is_met)


# --- memory ---------------------------------------------------------------------------------------


def _measure_memory(loads: Loads, report: Report, most_rows: int) -> None:
    kinds = ("bulk", "stream")
    rows: list[dict[str, object]] = []
    highest: dict[tuple[str, int], float] = {}
    turns = [(kind, count) for kind in kinds for count in (most_rows // 10, most_rows)]
    with progress() as bar:
        task = bar.add_task("memory", total=len(turns))
        for kind, count in turns:
            bar.update(task, description=f"memory, {kind}: {count:,} rows")
            with loads.server() as server:
                before_mb = resident_mb(server)
                seconds = loads.run_on(server, kind, count, _MEMORY_CONTENT_BYTES)
                highest[kind, count] = resident_mb(server, "VmHWM")
                rows.append(
                    {
                        "contender": kind,
                        "rows": count,
                        "seconds": seconds,
                        "before, MB": before_mb,
                        "highest, MB": highest[kind, count],
                        "after, MB": resident_mb(server),
                    }
                )
            bar.advance(task)
    report.table(f"The server's resident memory, {_MEMORY_CONTENT_BYTES} B", rows)
    more_mb = (most_rows - most_rows // 10) * _MEMORY_CONTENT_BYTES / 1e6
    if more_mb < _MEMORY_TELLING * _MEMORY_GROWTH_MB_MAX:
        return  # too few rows to show whether the server keeps them all in memory
    for kind in kinds:
        growth_mb = highest[kind, most_rows] - highest[kind, most_rows // 10]
        report.verdict(
            f"{kind}: {most_rows:,} rows take at most {_MEMORY_GROWTH_MB_MAX:g} MB more of the "
            f"server's memory than a tenth of them: {growth_mb:.0f} MB",
            is_met=growth_mb <= _MEMORY_GROWTH_MB_MAX,
        )


# --- all of it ------------------------------------------------------------------------------------


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of each load")
    parser.add_argument(
        "--rpc-rows", type=int, help="of the loads with method=rpc, if not the same"
    )
    parser.add_argument(
        "--content-bytes", type=int, nargs="+", default=(200, 1024), help="of a row, one by one"
    )
    parser.add_argument("--partitions", type=int, default=8, help="tasks of each load")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the figures are medians")
    parser.add_argument(
        "--contenders", nargs="*", choices=CONTENDERS, default=CONTENDERS, help="in this order"
    )
    parser.add_argument(
        "--memory-rows", type=int, default=10_000_000, help="of the load for memory; 0: none"
    )
    arguments = parser.parse_args()
    # SIGTERM also ends the servers and deletes their data.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(arguments.dir)).resolve()
        conninfo, programs = "", {}
        if "copy" in arguments.contenders:
            binaries = postgres_binaries()
            programs = {"psycopg": version("psycopg"), "postgresql": postgres_version(binaries)}
            conninfo = stack.enter_context(running_postgres(binaries, folder))
        spark = stack.enter_context(spark_session(folder))
        spark.dataSource.register(QueueberDataSource)
        report = start_report(
            "Loading from Spark", arguments, folder,
            packages=("rocksdict", "pycapnp", "queueber", "pyspark", "pyarrow"),
            programs=programs,
        )  # fmt: skip
        loads = Loads(spark, folder, arguments.partitions, conninfo)
        if arguments.contenders:
            _report_speed(report, _measure_speed(loads, arguments))
        if arguments.memory_rows:
            _measure_memory(loads, report, arguments.memory_rows)
        report.write_json(arguments.json)


if __name__ == "__main__":
    main()
