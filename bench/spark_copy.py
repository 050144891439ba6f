"""PostgreSQL's side of `bench.spark`: tasks that COPY their partition into a queue's table.

The table is smaller than those of queues on PostgreSQL (River, pg-boss): it has only the columns
that a lease-based queue needs, a primary key, and the one index that a poll reads.
"""

from collections.abc import Iterable, Iterator

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame

from bench.copy_format import HEADER, TRAILER, copy_rows

_TABLE = """
CREATE TABLE {table} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue integer NOT NULL DEFAULT 1,
    state smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 5,
    attempts smallint NOT NULL DEFAULT 0,
    visible_at timestamptz NOT NULL DEFAULT now(),
    contents bytea NOT NULL
);
CREATE INDEX ON {table} (queue, state, priority, visible_at, id);
"""

_LOG_FACTOR = 2
"""Bytes of the write-ahead log for each byte of contents of 200 bytes; less for longer ones."""


def create_table(conninfo: str, table: str, *, load_bytes: int) -> None:
    """Create a table for that many bytes, with a log as in a server that has run for a while.

    A new cluster creates the files of its write-ahead log, which takes longer than filling them. A
    cluster that has run for a while reuses them, so they are created here, before the measurement.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in _TABLE.format(table=table).split(";"):
            connection.execute(statement.encode())
        query = "SELECT coalesce(sum(size), 0) FROM pg_ls_waldir()"
        while _number(connection, query) < load_bytes * _LOG_FACTOR:
            connection.execute("SELECT pg_logical_emit_message(false, 'bench', 'not empty')")
            connection.execute("SELECT pg_switch_wal()")
        # After this the files are free again, and earlier data is not written during the load.
        connection.execute("CHECKPOINT")


def drop_table(conninfo: str, table: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {table}".encode())


def rows_in(conninfo: str, table: str, content_bytes: int) -> int:
    """How many rows have contents of this length."""
    with psycopg.connect(conninfo) as connection:
        query = f"SELECT count(*) FROM {table} WHERE octet_length(contents) = {content_bytes:d}"
        return _number(connection, query)


def _number(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def copy_into(frame: DataFrame, conninfo: str, table: str) -> None:
    """Load the frame: a connection and a transaction with one COPY for each task."""

    def copy_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        statement = f"COPY {table} (contents) FROM STDIN (FORMAT binary)".encode()
        with psycopg.connect(conninfo) as connection, connection.cursor().copy(statement) as to:
            to.write(HEADER)
            for batch in batches:
                to.write(copy_rows(batch.column(0)))
                rows += batch.num_rows
            to.write(TRAILER)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    frame.mapInArrow(copy_partition, "rows long").collect()
