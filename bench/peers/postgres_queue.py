"""PostgreSQL as a queue: a table whose rows callers lease with SKIP LOCKED."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from psycopg import AsyncConnection, sql

from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import process_ids
from bench.postgres import postgres_binaries, postgres_version, running_postgres

_SETTINGS = {
    # What durability needs stays as it comes: fsync, synchronous_commit and full_page_writes are
    # on. The rest is what one sets for a busy table of short-lived rows.
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",  # no checkpoint in the middle of a round
    "min_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "wal_buffers": "64MB",
    "max_connections": "200",
    "autovacuum_naptime": "2s",  # with the default of a minute, dead rows slow the queue down
    "autovacuum_vacuum_cost_delay": "0",
}
_CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS {queue} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    contents bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000)
"""
# Without it, a call reads past every leased row. With a hundred rows a call and few of them leased,
# it costs adds about a fifth, and gains takes a little less.
_CREATE_INDEX = "CREATE INDEX IF NOT EXISTS {index} ON {queue} (leased_until, id)"
_ADD_ONE = "INSERT INTO {queue} (contents) VALUES (%b)"
_ADD_MANY = "INSERT INTO {queue} (contents) SELECT unnest(%b::bytea[])"
# An array, since the planner may choose to read the whole table for a join or for IN (SELECT ..).
_TAKE = """
UPDATE {queue} SET leased_until = now() + {lease}
WHERE id = ANY(ARRAY(
    SELECT id FROM {queue} WHERE leased_until < now() ORDER BY leased_until, id LIMIT %b
    FOR UPDATE SKIP LOCKED
))
RETURNING id, contents
"""
_ACK = "DELETE FROM {queue} WHERE id = ANY(%b)"
# About as fast as a COPY, which would have to be given each row.
_FILL = "INSERT INTO {queue} (contents) SELECT %b FROM generate_series(1, %b)"
_VACUUM = "VACUUM ANALYZE {queue}"


class PostgresQueue:
    name = "PostgreSQL"
    durability = "yes"
    notes = "SKIP LOCKED; over a Unix socket"
    packages = ("postgresql",)
    library = "psycopg"
    is_blocking = False

    def version(self) -> str:
        return postgres_version(_binaries())

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        data_dir = folder / "postgres"
        try:
            with running_postgres(_binaries(), folder, _SETTINGS) as conninfo:
                root = int((data_dir / "postmaster.pid").read_text().split()[0])
                yield Server(conninfo, lambda: process_ids(root))
        finally:
            shutil.rmtree(data_dir, ignore_errors=True)
            (folder / "postgres.log").unlink(missing_ok=True)

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        async with contextlib.AsyncExitStack() as stack:
            connections = [
                await stack.enter_async_context(
                    await AsyncConnection.connect(address, autocommit=True)
                )
                for _ in range(callers)
            ]
            await _create(connections[0], queue)
            yield [_Client(connection, queue) for connection in connections]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        async with await AsyncConnection.connect(address, autocommit=True) as connection:
            await _create(connection, queue)
            await connection.execute(_statement(_FILL, queue), [contents, count])
            await connection.execute(_statement(_VACUUM, queue))


class _Client:
    def __init__(self, connection: "AsyncConnection", queue: str) -> None:
        self._cursor = connection.cursor(binary=True)
        self._add_one = _statement(_ADD_ONE, queue)
        self._add_many = _statement(_ADD_MANY, queue)
        self._take = _statement(_TAKE, queue)
        self._ack = _statement(_ACK, queue)

    async def add(self, contents: Sequence[bytes]) -> None:
        if len(contents) == 1:
            await self._cursor.execute(self._add_one, contents, prepare=True)
        else:
            await self._cursor.execute(self._add_many, [contents], prepare=True)

    async def take(self, count: int) -> Taken:
        taken = await self._take_now(count)
        if not taken.contents:
            # A statement cannot wait for rows, so callers poll again.
            await asyncio.sleep(WAIT_SECONDS)
            taken = await self._take_now(count)
        return taken

    async def _take_now(self, count: int) -> Taken:
        await self._cursor.execute(self._take, [count], prepare=True)
        rows = await self._cursor.fetchall()
        return Taken([contents for _, contents in rows], [item_id for item_id, _ in rows])

    async def ack(self, taken: Taken) -> None:
        await self._cursor.execute(self._ack, [taken.token], prepare=True)


def _binaries() -> Path:
    return postgres_binaries("leave 'postgres' out of --peers")


async def _create(connection: "AsyncConnection", queue: str) -> None:
    await connection.execute(_statement(_CREATE_TABLE, queue))
    await connection.execute(_statement(_CREATE_INDEX, queue))


def _statement(text: str, queue: str) -> bytes:
    """Once for every client: to put a statement together costs more than to send it."""
    parts = {
        "queue": sql.Identifier(queue),
        "index": sql.Identifier(f"{queue}_leased_until"),
        "lease": sql.Literal(f"{LEASE_SECONDS} s") + sql.SQL("::interval"),
    }
    statement: bytes = sql.SQL(text).format(**parts).as_bytes(None)
    return statement
