"""The contenders of `bench.spark`: each loads the same rows into a new queue or table."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.spark_frame import count_in_python, frame_of
from queueber import connect
from queueber.testing import ServerProcess, running_server

CONTENDERS = ("noop", "arrow", "bulk", "stream", "rpc", "copy")
_OPTIONS = {
    "bulk": {"method": "bulk"},
    "stream": {"method": "bulk", "transfer": "stream"},
    "rpc": {"method": "rpc"},
}
_NAME = "bench"
"""The name of the queue and of the table."""

Load = Callable[[DataFrame], None]


@dataclass(frozen=True, slots=True)
class Loads:
    spark: SparkSession
    folder: Path
    partitions: int
    conninfo: str
    """The conninfo of PostgreSQL; empty without one."""

    def _frame(self, rows: int, content_bytes: int) -> DataFrame:
        return frame_of(
            self.spark, rows=rows, content_bytes=content_bytes, partitions=self.partitions
        )

    def run(self, contender: str, rows: int, content_bytes: int) -> float:
        """Load that many rows into a new queue or table; returns the seconds."""
        if contender == "noop":
            return _timed(_drop, self._frame(rows, content_bytes))
        if contender == "arrow":
            return self._hand_to_python(rows, content_bytes)
        if contender == "copy":
            return self._copy(rows, content_bytes)
        with self.server() as server:
            return self.run_on(server, contender, rows, content_bytes)

    @contextmanager
    def server(self) -> Iterator[ServerProcess]:
        """A server with an empty store."""
        data_dir = self.folder / "data"
        with running_server(data_dir=data_dir) as server:
            yield server
        shutil.rmtree(data_dir)

    def run_on(self, server: ServerProcess, contender: str, rows: int, content_bytes: int) -> float:
        def write(frame: DataFrame) -> None:
            options = {"address": server.address, "queue": _NAME, **_OPTIONS[contender]}
            frame.write.format("queueber").options(**options).mode("append").save()

        seconds = _timed(write, self._frame(rows, content_bytes))
        with connect(server.address) as client:
            stats = client.queue(_NAME, must_exist=True).stats()
        _check(contender, "rows", stats.ready, rows)
        _check(contender, "bytes", stats.contents_bytes, rows * content_bytes)
        return seconds

    def _copy(self, rows: int, content_bytes: int) -> float:
        # Imported here: only this contender needs the driver, which comes with the benchmarks.
        from bench.spark_copy import copy_into, create_table, drop_table, rows_in

        create_table(self.conninfo, _NAME, load_bytes=rows * content_bytes)
        seconds = _timed(
            lambda frame: copy_into(frame, self.conninfo, _NAME), self._frame(rows, content_bytes)
        )
        _check("copy", "rows", rows_in(self.conninfo, _NAME, content_bytes), rows)
        drop_table(self.conninfo, _NAME)
        return seconds

    def _hand_to_python(self, rows: int, content_bytes: int) -> float:
        def count(frame: DataFrame) -> None:
            _check("arrow", "rows", count_in_python(frame), rows)

        return _timed(count, self._frame(rows, content_bytes))


def _drop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _timed(load: Load, frame: DataFrame) -> float:
    # Write out what earlier contenders have left in caches.
    os.sync()
    started = time.perf_counter()
    load(frame)
    return time.perf_counter() - started


def _check(contender: str, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise SystemExit(f"{contender}: the store has {found:,} {what} instead of {expected:,}")
