"""Peeking with a filter: what it may ask of items, and how far a call looks."""

import pytest

from queueber.engine.queue.peek import peek
from queueber.engine.queue.peek_filter import PeekFilter
from queueber.errors import InvalidArgument
from queueber.limits import MIB
from queueber.model import ItemInfo, ItemOptions, ItemState, NewItems
from tests.engine.making import allow_attempts
from tests.support.rig import START_MS, Rig


def look(rig: Rig, state: ItemState, where: str, limit: int = 100) -> list[bytes]:
    """The contents of all that match, page by page."""
    found: list[ItemInfo] = []
    after, chosen = b"", PeekFilter(where)
    while True:
        page, after = peek(rig.engine.store, rig.queue, state, after, limit, MIB, chosen)
        found += page
        if not after:
            return [each.contents for each in found]


@pytest.mark.parametrize(
    ("where", "matching"),
    [
        ("item.key = 'k1'", [b'{"n": 1}']),
        ("item.key LIKE 'k%'", [b'{"n": 0}', b'{"n": 1}']),
        ("item.batch = 'night'", [b'{"n": 0}', b'{"n": 1}', b"plain"]),
        ("attributes.region = 'eu'", [b'{"n": 1}', b"plain"]),
        ("n >= 1", [b'{"n": 1}']),
        ("item.bytes = 5", [b"plain"]),
        ("item.key IS NULL AND item.priority = 5", [b"plain"]),
        (f"item.added_at_ms = {START_MS} AND NOT item.attempt > 1", [
            b'{"n": 0}', b'{"n": 1}', b"plain",
        ]),
        ("item.state = 'ready' AND item.deliveries = 0 AND item.at_ms < 5", []),
    ],
)  # fmt: skip
def test_items_that_match_are_shown(rig: Rig, where: str, matching: list[bytes]) -> None:
    rig.add_items(
        NewItems(
            [b'{"n": 0}', b'{"n": 1}', b"plain"],
            keys=["k0", "k1", ""],
            attributes=[{"region": "us"}, {"region": "eu"}, {"region": "eu"}],
            batch="night",
        )
    )

    assert look(rig, ItemState.READY, where) == matching
    assert look(rig, ItemState.READY, where, limit=1) == matching


def test_dead_letters_are_found_by_their_error(rig: Rig) -> None:
    allow_attempts(rig, 1)
    for error in ("timeout after 5 s", "no route", "read timeout"):
        rig.add(error.encode())
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, error)

    found = look(rig, ItemState.DEAD, "item.error LIKE '%timeout%' AND item.reason IS NOT NULL")

    assert found == [b"timeout after 5 s", b"read timeout"]


def test_leased_items_are_found_by_their_lease(rig: Rig) -> None:
    rig.add(b"a", b"b")
    first, _ = rig.poll_many([1, 1])

    assert look(rig, ItemState.LEASED, f"item.lease = '{first.lease_id.hex()}'") == [b"a"]


def test_call_looks_at_a_bounded_number_of_items_and_bytes(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.peek.SCAN_LOOKED_AT_MAX", 4)
    rig.add(*[b"%d" % at for at in range(10)])
    seldom = PeekFilter("contents.x = 1")

    page, after = peek(rig.engine.store, rig.queue, ItemState.READY, b"", 9, MIB, seldom)
    assert (page, bool(after)) == ([], True)
    assert look(rig, ItemState.READY, "item.bytes = 1") == [b"%d" % at for at in range(10)]

    monkeypatch.setattr("queueber.engine.queue.peek.SCAN_LOOKED_AT_MAX", 100)
    monkeypatch.setattr("queueber.engine.queue.peek._LOOKED_AT_BYTES_MAX", 0)
    _, second = peek(rig.engine.store, rig.queue, ItemState.READY, b"", 9, MIB, seldom)
    assert b"" < second < after
    assert look(rig, ItemState.READY, "item.bytes = 1") == [b"%d" % at for at in range(10)]


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("item.nothing = 1", "where: item.nothing is no field of an item; there are added_at_ms, "),
        ("item.change = 'added'", "where: item.change is no field of an item"),
        ("a = ", "where: "),
        ("a = 1" + " " * 2000, "where has 2005 characters; the limit is 2000"),
    ],
)
def test_wrong_filters_are_refused(where: str, match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        PeekFilter(where)


def test_what_matches_is_told_with_what_it_has_of_its_own(rig: Rig) -> None:
    _, wanted = rig.add_items(
        NewItems([b"x", b'{"n": 1}'], options=[ItemOptions(5), ItemOptions(7)])
    ).ids

    where = PeekFilter("contents.n = 1")
    found, _ = peek(rig.engine.store, rig.queue, ItemState.READY, b"", 10, 1000, where)

    assert [(each.id, each.attempts_max) for each in found] == [(wanted, 7)]
