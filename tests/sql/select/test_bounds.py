"""Memory, time, rows and turns: what is above a bound ends alone, with an error that names it."""

import asyncio
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import queueber
from queueber.errors import InvalidArgument, ResourceExhausted, Unavailable
from queueber.limits import MIB
from queueber.sql.select import Engines, SelectBounds, select
from queueber.sql.select.process import Engine
from queueber.testing import ServerProcess
from tests.sql.select.conftest import Run

MEMORY_BYTES = 192 * MIB
ENGINE_BYTES = 64 * MIB
SLACK_BYTES = 16 * MIB

GREEDY = {
    "one long text": "SELECT length(repeat('x', 3000000000))",
    "many long texts": "SELECT max(length(repeat('x', 1000000 + i::INT))) FROM range(100000) t(i)",
    "a text in a text": "SELECT length(replace(repeat('a', 60000), 'a', repeat('a', 60000)))",
    "a text that doubles": "WITH RECURSIVE r(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM "
    "r) SELECT max(length(s)) FROM r",
    "a list": "SELECT len(range(1000000000))",
    "lists of lists": "SELECT list(range(100000)) FROM range(100000)",
    "an aggregate": "SELECT list(i) FROM range(1000000000) t(i)",
    "a joined text": "SELECT string_agg(i::VARCHAR, '') FROM range(1000000000) t(i)",
    "groups": "SELECT count(*) FROM (SELECT i FROM range(1000000000) t(i) GROUP BY i)",
    "a sort": "SELECT * FROM range(1000000000) t(i) ORDER BY hash(i) LIMIT 1 OFFSET 900000000",
    "a join": "SELECT count(*) FROM range(100000000) a(i) JOIN range(100000000) b(i) USING (i)",
    "a window": "SELECT max(s) FROM (SELECT sum(i) OVER (ORDER BY hash(i)) s FROM range(1000000000)"
    " t(i))",
    "padding": "SELECT length(lpad('x', 2000000000, 'y'))",
    "a pattern": "SELECT length(regexp_replace(repeat('a', 1000000), '', repeat('b', 10000), 'g'))",
    "JSON": "SELECT length(to_json(range(200000000))::VARCHAR)",
    "printing": "SELECT length(printf('%2000000000d', 1))",
    "a value of the answer": "SELECT bitstring('1', 2000000000)",
    "a resized list": "SELECT list_resize([1], 4000000000, 2)",
    "parts of a text": "SELECT str_split(repeat('a,', 30000000), ',')",
    "matches": "SELECT regexp_extract_all(repeat('a', 10000000), 'a')",
    "a distance": "SELECT damerau_levenshtein(repeat('a', 60000), repeat('b', 60000))",
    "tables in tables": "WITH c0 AS (SELECT 1), "
    + ", ".join(f"c{at} AS (SELECT * FROM c{at - 1}, c{at - 1} x{at})" for at in range(1, 25))
    + " SELECT count(*) FROM c24",
    "a histogram": "SELECT histogram(repeat(i::VARCHAR, 100000)) FROM range(100000) t(i)",
    "numbers as text": "SELECT length(format('{:>2000000000}', 1))",
}

QUICK = {
    "one long text",
    "many long texts",
    "a text that doubles",
    "an aggregate",
    "a sort",
    "a list",
}
"""Those that `make test` tries: one of each kind."""

ENDLESS = {
    "a cross join": "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(100) c "
    "WHERE a.range + b.range + c.range = -1",
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) "
    "FROM r",
    "one call": "SELECT levenshtein(repeat('ab', 10000), repeat('ba', 10000)) + count(*) FROM "
    "range(100000) t(i) WHERE levenshtein(repeat('a', 5000), repeat('b', 5000 + i::INT % 7)) > 0",
}


@pytest.fixture(scope="module")
def small() -> Iterator[Engines]:
    made = Engines(engines_max=1, waits_max=1, memory_bytes=MEMORY_BYTES, engine_bytes=ENGINE_BYTES)
    yield made
    made.close()


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


class Watched(Engines):
    """Remembers how large its engines have become, and how large they were at first."""

    def __init__(self) -> None:
        super().__init__(engines_max=1, memory_bytes=MEMORY_BYTES, engine_bytes=ENGINE_BYTES)
        self.peak_bytes = 0

    def _put_back(self, engine: Engine) -> None:
        if engine.can_go_on or engine._is_at_rest:
            self.peak_bytes = max(self.peak_bytes, peak_bytes(engine.pid))
        super()._put_back(engine)


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.close()


def run_on(
    engines: Engines, loop: asyncio.AbstractEventLoop, client: queueber.AsyncClient, text: str,
    **bounds: Any,
) -> object:  # fmt: skip
    return loop.run_until_complete(
        select(client, text, (), SelectBounds(**bounds), engines=engines)
    )


@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in GREEDY],
)
def test_statement_gets_no_more_memory_than_its_bound(
    name: str, watched: Watched, loop: asyncio.AbstractEventLoop, connected: queueber.AsyncClient
) -> None:
    """The process that runs it stays below the bound, and this one does not grow."""
    run_on(watched, loop, connected, "SELECT 1")
    (engine,) = watched._idle
    at_first, own = peak_bytes(engine.pid), peak_bytes(os.getpid())

    with pytest.raises((ResourceExhausted, InvalidArgument)) as refused:
        run_on(watched, loop, connected, GREEDY[name], seconds=3)

    assert watched.peak_bytes <= at_first + MEMORY_BYTES + SLACK_BYTES
    assert peak_bytes(os.getpid()) <= own + SLACK_BYTES
    if "memory" in str(refused.value):
        assert f"more than {MEMORY_BYTES // MIB} MiB" in str(refused.value)
    assert run_on(watched, loop, connected, "SELECT 1") is not None


@pytest.mark.parametrize("name", ["recursion", "one call"])
def test_statement_gets_no_more_time_than_its_bound(
    name: str, small: Engines, loop: asyncio.AbstractEventLoop, connected: queueber.AsyncClient
) -> None:
    run_on(small, loop, connected, "SELECT 1")
    started = time.monotonic()

    with pytest.raises(ResourceExhausted, match="took longer than 1 seconds"):
        run_on(small, loop, connected, ENDLESS[name], seconds=1)

    assert time.monotonic() - started < 3
    assert small._idle == {}


@pytest.mark.parametrize(
    ("call", "depth", "told"),
    [
        ("json_structure(json)", 200, "engine fails: JSON exceeds maximum recursion depth of 12"),
        ("json_contains(json, '1')", 200_000, "has crashed its query engine .SIGSEGV.*too deeply"),
    ],
)
def test_statement_that_breaks_its_engine_fails_alone(
    call: str, depth: int, told: str, client: queueber.Client, run: Run, engines: Engines
) -> None:
    client.topic(f"deep-{depth}").publish([b"[" * depth + b"]" * depth])

    with pytest.raises(InvalidArgument, match=told):
        run(f"SELECT {call} FROM topic('deep-{depth}')")

    assert engines._idle == {}, "what it may have damaged is not used again"
    assert run("SELECT 1").rows == [(1,)]


def test_answer_has_no_more_rows_and_bytes_than_its_bounds(run: Run) -> None:
    with pytest.raises(ResourceExhausted, match="more than 100 rows; add a LIMIT"):
        run("SELECT * FROM range(1000)", rows=100)
    with pytest.raises(ResourceExhausted, match="more than 10000 bytes"):
        run("SELECT repeat('x', 1000) FROM range(100)", bytes=10_000)

    assert len(run("SELECT * FROM range(100)", rows=100).rows) == 100


def test_tables_have_no_more_rows_and_bytes_than_their_bounds(
    client: queueber.Client, run: Run
) -> None:
    client.topic("large").publish([b"x" * 1000] * 3000)
    client.queue("large").add([b"x" * 100] * 1000)
    told = "add a WHERE on ts, offset or partition, or a LIMIT"

    with pytest.raises(ResourceExhausted, match=f"at least 3000 rows.*topic.'large'.*{told}"):
        run("SELECT max(text) FROM topic('large')", table_rows=2999)
    with pytest.raises(ResourceExhausted, match="more than 1 MiB"):
        run("SELECT max(text) FROM topic('large')", table_bytes=MIB)
    with pytest.raises(ResourceExhausted, match="add a WHERE on state or batch"):
        run("SELECT count(*) FROM queue('large')", table_rows=999)

    assert run("SELECT max(text) FROM topic('large') WHERE offset < 9", table_rows=10).rows
    assert run("SELECT text FROM topic('large') LIMIT 9", table_rows=10).rows
    assert run("SELECT count(*) FROM topic('large')", table_bytes=MIB).rows == [(3000,)]


def test_what_is_not_needed_is_not_read(client: queueber.Client, run: Run) -> None:
    """The bound of rows shows how many are read."""
    topic = client.topic("pushed")
    topic.publish([b"1"] * 500)
    time.sleep(0.01)
    later = datetime.fromtimestamp(topic.publish([b"2"] * 5).at_ms / 1000, UTC)

    for text, read in {
        f"SELECT count(*) FROM topic('pushed') WHERE ts >= '{later}'": 5,
        f"SELECT max(ts) FROM topic('pushed') WHERE ts < '{later}'::TIMESTAMP - INTERVAL 1 DAY": 0,
        "SELECT offset FROM topic('pushed') ORDER BY offset DESC LIMIT 3": 3,
        "SELECT offset FROM topic('pushed') ORDER BY ts LIMIT 4": 4,
        "SELECT offset FROM topic('pushed') LIMIT 3 OFFSET 2": 5,
        "SELECT max(t.text) FROM topic('pushed') t WHERE 100 <= t.offset AND t.offset <= 109": 10,
        "SELECT count(*) FROM topic('pushed') WHERE offset BETWEEN 10 AND 12": 3,
        "SELECT count(*) FROM topic('pushed') WHERE partition = 1": 0,
    }.items():
        assert len(run(text, table_rows=read).rows) >= 1
        if read:
            with pytest.raises(ResourceExhausted):
                run(text, table_rows=read - 1)


def test_statements_wait_for_their_turn_and_not_without_end(
    small: Engines, loop: asyncio.AbstractEventLoop, connected: queueber.AsyncClient
) -> None:
    async def crowd() -> list[object]:
        several = [select(connected, "SELECT 1", engines=small) for _ in range(4)]
        return list(await asyncio.gather(*several, return_exceptions=True))

    for _ in range(2):
        outcomes = loop.run_until_complete(crowd())
        refused = [each for each in outcomes if isinstance(each, Unavailable)]

        assert len(refused) == 2
        assert "wait for their turn" in str(refused[0])


def test_caller_that_gives_up_ends_the_statement(
    small: Engines, loop: asyncio.AbstractEventLoop, connected: queueber.AsyncClient
) -> None:
    async def give_up() -> float:
        await select(connected, "SELECT 1", engines=small)
        (engine,) = small._idle
        endless = asyncio.ensure_future(select(connected, ENDLESS["recursion"], engines=small))
        await asyncio.sleep(0.2)
        endless.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await endless
        took = time.monotonic() - started
        while Path(f"/proc/{engine.pid}").exists():  # killed, and to be gone at once
            await asyncio.sleep(0.01)
            assert time.monotonic() - started < 5
        await select(connected, "SELECT 1", engines=small)
        return took

    assert loop.run_until_complete(give_up()) < 1


def test_trio_programs_select_too(small: Engines, server: ServerProcess) -> None:
    import trio

    async def main() -> object:
        async with queueber.connect_async(server.address) as client:
            await client.topic("trio").publish([b"1", b"2"])
            found = await select(client, "SELECT text FROM topic('trio')", engines=small)
            return found.rows

    assert trio.run(main) == [("1",), ("2",)]


def test_snapshots_are_closed_after_each_statement(client: queueber.Client, run: Run) -> None:
    """The server keeps 16, and ends one that is read no more only after two seconds."""
    client.queue("snapped").add([b"1"])

    for _ in range(20):
        assert run("SELECT count(*) FROM queue('snapped'), results('snapped')").rows == [(0,)]
        with pytest.raises(ResourceExhausted):
            run("SELECT count(*) FROM queue('snapped')", table_rows=0)
