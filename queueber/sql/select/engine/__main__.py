"""The loop of the engine: `python -m queueber.sql.select.engine MEMORY_BYTES TABLE_BYTES`.

Standard input and output are the pipes of the program that has started it, and it ends with that
program. After a statement that took much memory, or that failed in a way that may have damaged it,
it asks to be ended: no other statement is to suffer from it, and memory comes back for sure.
"""

import gc
import importlib
import json
import os
import pkgutil
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import sqlglot

from queueber.errors import QueueberError, ResourceExhausted
from queueber.limits import MIB
from queueber.sql.select.columns import TABLES, sent_columns
from queueber.sql.select.engine.database import Database, as_error, leaves_whole
from queueber.sql.select.engine.frames import Frame, FrameLost, receive, send
from queueber.sql.select.engine.jail import Jail
from queueber.sql.select.engine.statement import read_statement
from queueber.sql.select.engine.wanted import needs_of, whole_needs
from queueber.sql.select.needs import Need, pack_needs

_IN, _OUT = 0, 1
_KEPT_BYTES = 64 * MIB
"""A process that has grown by more than this is not used again."""


class Asked:
    """A statement, from its text to its answer."""

    def __init__(self, database: Database, asked: dict[str, Any]) -> None:
        self._database = database
        self._rows_max = int(asked["rows"])
        self._bytes_max = int(asked["bytes"])
        text, parameters = asked["sql"], json.loads(asked["parameters"])
        self.statement = read_statement(text, parameters, int(asked["now_us"]), database.own_names)
        database.check(self.statement)
        whole = whole_needs(self.statement)
        self._put({need.table: [] for need in whole}, whole)
        try:
            self.columns = database.bind(self.statement)
        finally:
            database.clear(whole)
        self.needs = whole
        if asked["narrows"]:
            self.needs = needs_of(self.statement, database.constant, self._rows_max)

    def _put(self, rows: dict[str, list[pa.RecordBatch]], needs: list[Need]) -> None:
        for need in needs:
            self._database.put(need, rows[need.table])

    def receive_tables(self) -> bool:
        """Take the rows of all tables; False if the statement is to be forgotten."""
        rows: dict[str, list[pa.RecordBatch]] = {need.table: [] for need in self.needs}
        by_name = {need.table: need for need in self.needs}
        table, schema = "", pa.schema([])
        while True:
            match receive(_IN):
                case Frame.TABLE, body:
                    table = body.decode()
                    need = by_name[table]
                    names = sent_columns(need.kind, need.columns)
                    schema = pa.schema([TABLES[need.kind].field(name) for name in names])
                case Frame.ROWS, body:
                    rows[table].append(pa.ipc.read_record_batch(pa.py_buffer(body), schema))
                case Frame.GO, _:
                    self._put(rows, self.needs)
                    return True
                case _:
                    return False

    def answer(self) -> None:
        """Send the columns and the rows."""
        send(_OUT, Frame.COLUMNS, json.dumps(self.columns).encode())
        rows = sent = 0
        is_first = True
        for batch in self._database.run(self.statement):
            rows += batch.num_rows
            if rows > self._rows_max:
                raise ResourceExhausted(
                    f"rows: the answer has more than {self._rows_max} rows; add a LIMIT, or a WHERE"
                )
            if is_first:
                send(_OUT, Frame.ROWS, memoryview(batch.schema.serialize()))
                is_first = False
            packed = memoryview(batch.serialize())
            sent += len(packed)
            if sent > self._bytes_max:
                raise ResourceExhausted(
                    f"rows: the answer has more than {self._bytes_max} bytes; add a LIMIT, or name "
                    "fewer columns"
                )
            send(_OUT, Frame.ROWS, packed)

    def clear(self) -> None:
        self._database.clear(self.needs)


class Loop:
    """One statement after the other."""

    def __init__(self, database: Database, jail: Jail) -> None:
        self._database = database
        self._jail = jail

    def serve(self) -> None:
        frame, body = receive(_IN)
        if frame is not Frame.STATEMENT:
            return  # rows for a statement that has failed
        asked = json.loads(body)
        self._jail.allow_seconds(int(asked["seconds"]))
        try:
            self._answer(asked)
        except FrameLost:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it is, the program is told
            told = as_error(error)
            is_spent = self._is_spent() or not leaves_whole(error)
            text = json.dumps([told.code, str(told), is_spent])
            send(_OUT, Frame.ERROR, text.encode())

    def _answer(self, asked: dict[str, Any]) -> None:
        one = Asked(self._database, asked)
        send(_OUT, Frame.NEEDS, pack_needs(one.needs))
        try:
            if not one.receive_tables():
                return
            one.answer()
        finally:
            one.clear()
        send(_OUT, Frame.END, b"spent" if self._is_spent() else b"")

    def _is_spent(self) -> bool:
        return self._database.is_broken or self._jail.grown_bytes > _KEPT_BYTES


def _warm_up(database: Database) -> None:
    """Load whatever is loaded when it is first used: no file can be opened later."""
    for module in pkgutil.walk_packages(sqlglot.__path__, "sqlglot."):
        # It loads parts of itself when they are first needed. Other systems' SQL is none of them.
        if not module.name.startswith(("sqlglot.executor", "sqlglot.dialects.", "sqlglot.__")):
            importlib.import_module(module.name)
    now_us = int(datetime.now(UTC).timestamp() * 1_000_000)
    for text in (
        "SELECT t.*, count(*) OVER () FROM topic('a') t WHERE ts > now() - INTERVAL 1 DAY LIMIT 2",
        "WITH x AS (SELECT json->>'$.a' a FROM queue('a')) SELECT a, count(*) FROM x GROUP BY ALL",
        "SELECT strftime(now() AT TIME ZONE 'Europe/Paris', '%c'), sum(1.5), [1], {'a': 1}, "
        "'1'::JSON",
    ):
        statement = read_statement(text, [], now_us, database.own_names)
        database.check(statement)
        needs = needs_of(statement, database.constant, 10)
        for need in needs:
            database.put(need, [])
        for batch in database.run(statement):
            batch.serialize()
        database.clear(needs)
    with suppress(QueueberError):
        read_statement("SELECT (", [], now_us, database.own_names)


def main() -> None:
    memory_bytes, engine_bytes = map(int, sys.argv[1:])
    database = Database(engine_bytes)
    _warm_up(database)
    sys.setrecursionlimit(2_000)
    gc.collect()
    gc.freeze()  # what is loaded now is never garbage: later collections pass over it
    loop = Loop(database, Jail(memory_bytes))
    with suppress(FrameLost):
        while True:
            loop.serve()
    os._exit(0)  # what was loaded would close files that are closed


if __name__ == "__main__":
    main()
