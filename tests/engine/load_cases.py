"""A load and the adds that mean the same: what both leave behind must be equal."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from queueber.db.records.loads import LoadRecord
from queueber.db.records.remembered import (
    FORGET_KEY,
    decode_batch,
    decode_key_entry,
    split_digests,
)
from queueber.ids import IdSource, ItemId, range_id
from queueber.limits import MIB
from queueber.model import NewItems, PartRef, Rows
from tests.support.load_rig import LoadRig
from tests.support.operations import add
from tests.support.waiting_items import waiting_items

NAME = "the load"


@dataclass(frozen=True)
class Row:
    contents: bytes
    delay_ms: int = 0
    priority: int = 5
    key: str = ""
    attributes: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Plan:
    parts: Mapping[int, Sequence[Row]]
    """By partition."""
    batch: str = ""
    before: Sequence[Row] = ()
    """What is there before the load begins."""
    sorted_entries: int = 1000
    file_bytes: int = MIB
    rows_a_call: int = 1000
    buffered_rows: int = 1


RICH = Plan(
    {
        3: [
            Row(b"a", key="k1"),
            Row(b"bb", delay_ms=50, key="k2", priority=9),
            Row(b"ccc", key="old", attributes={"x": "y"}),
            Row(b"d", priority=9),
            Row(b"", delay_ms=20),
        ],
        0: [
            Row(b"f", key="k1", priority=2),
            Row(b"g", key="old", delay_ms=30),
            Row(b"h" * 100, priority=2, attributes={"a": "", "ö": "b"}),
        ],
    },
    batch="batch",
    before=[Row(b"before"), Row(b"first", key="old"), Row(b"low", priority=0)],
    sorted_entries=2,
    rows_a_call=2,
    file_bytes=1,
)
"""Duplicates of what was there and within the load, delays, priorities, several files of a kind."""


def as_rows(rows: Sequence[Row], load: LoadRecord) -> Rows:
    return Rows(
        [row.contents for row in rows],
        [load.started_at_ms + row.delay_ms for row in rows],
        [row.priority for row in rows],
        [row.key for row in rows],
        [row.attributes or {} for row in rows],
    )


def add_row(rig: LoadRig, row: Row, batch: str = "") -> None:
    items = NewItems(
        [row.contents], [row.delay_ms], [row.priority], [row.key], [row.attributes or {}], batch
    )
    add(rig.engine, rig.queue, items, rig.now_ms)


def prepare(rig: LoadRig, plan: Plan) -> LoadRecord:
    for row in plan.before:
        add_row(rig, row)
    return rig.begin(NAME, batch=plan.batch)


def stage_all(rig: LoadRig, plan: Plan, load: LoadRecord) -> list[PartRef]:
    return [
        rig.stage(
            load,
            *(
                as_rows(rows[at : at + plan.rows_a_call], load)
                for at in range(0, len(rows), plan.rows_a_call)
            ),
            partition=partition,
            sorted_entries=plan.sorted_entries,
            file_bytes=plan.file_bytes,
            buffered_rows=plan.buffered_rows,
        )
        for partition, rows in plan.parts.items()
    ]


class _GivenId(IdSource):
    def __init__(self, item_id: bytes) -> None:
        self._given = ItemId(item_id)

    def mint_last(self, count: int, now_ms: int) -> ItemId:
        assert count == 1
        return self._given


@contextmanager
def given_id(rig: LoadRig, item_id: bytes) -> Iterator[None]:
    real, rig.engine.kernel.ids = rig.engine.kernel.ids, _GivenId(item_id)
    yield
    rig.engine.kernel.ids = real


def add_instead(rig: LoadRig, plan: Plan) -> None:
    """Adds of the same rows, one by one, with the ids that they have in the load."""
    for row in plan.before:
        add_row(rig, row)
    head = rig.engine.kernel.ids.mint_range(rig.now_ms)
    for partition, rows in sorted(plan.parts.items()):
        for number, row in enumerate(rows):
            with given_id(rig, range_id(head, partition, number)):
                add_row(rig, row, plan.batch)


def outcome(rig: LoadRig) -> dict[str, object]:
    """All that the store holds, but what tells of the load itself.

    Items are compared one by one: adds of one item make other blocks and runs than a load. A batch
    may have ended between adds, and is then to be forgotten; within a load it cannot.
    """
    found: dict[str, object] = dict(rig.dump())
    found["items"] = waiting_items(rig.dump())
    for family in ("leftovers", "visibility_index", "delayed", "places"):
        del found[family]
    counters = rig.queue.counters
    # An entry names several keys, also some that others have: those of the load's duplicates.
    times = {key[4:]: decode_key_entry(value)[1] for key, value in rig.dump()["keys"]}
    found["forget"] = {
        (int.from_bytes(key[4:12]), digest)
        for key, value in rig.dump()["forget"]
        if value[:1] == FORGET_KEY
        for digest in split_digests(value[1:])
        if times.get(digest) == int.from_bytes(key[4:12])
    }
    batches = [decode_batch(value) for _, value in rig.dump()["batches"]]
    found["batches"] = [replace(batch, forget_at_ms=0) for batch in batches]
    found["counters"] = {
        **{
            name: getattr(counters, name)
            for name in (
                "ready", "delayed", "leased", "dead", "leases", "contents_bytes", "quarantined",
                "added_total", "duplicates_total", "batches", "last_batch",
            )
        },
        "levels": {level: count for level, (count, _) in counters.levels.items()},
    }  # fmt: skip
    found["loads"] = found["default"] = None
    return found


def expected_outcome(plan: Plan) -> tuple[dict[str, object], list[bytes]]:
    """What adds leave, and the contents in the order in which polls find them."""
    rig = LoadRig()
    try:
        add_instead(rig, plan)
        found = outcome(rig)
        return found, polled_later(rig)
    finally:
        rig.close()


def polled_later(rig: LoadRig) -> list[bytes]:
    """All contents in the order of the polls, when every delay is over."""
    rig.now_ms += 10_000
    rig.sweep_all()
    found: list[bytes] = []
    while (polled := rig.poll(2)).ids:
        found += polled.contents
        rig.assert_sound()
    return found
