"""Add with an origin: ids contain the row, so duplicates leave gaps, and blocks have none."""

from collections.abc import Sequence

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import encode_block
from queueber.db.records.runs import MarkFields
from queueber.ids import origin_of, shifted
from queueber.model import LoadRef, NewItems, Origin, QueueSettings
from tests.engine.making import run_of
from tests.support.operations import begin_load, cancel, configure_queue
from tests.support.rig import QUEUE, Rig


@pytest.fixture
def load(rig: Rig) -> LoadRef:
    settings = QueueSettings(dedup_window_ms=1000)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    ref = LoadRef("l")
    begin_load(
        rig.engine, rig.queue, ref, batch="", timeout_ms=1000, token=bytes(16), now_ms=rig.now_ms
    )
    return ref


def rows_of(ids: Sequence[bytes]) -> list[tuple[int, int] | None]:
    return [origin_of(item_id) for item_id in ids]


def test_add_with_an_origin_has_the_rows_in_one_block(rig: Rig, load: LoadRef) -> None:
    ids = list(rig.add_items(NewItems([b"a", b"b", b"c"], origin=Origin(load, 3, row=255))).ids)

    assert rows_of(ids) == [(3, 255), (3, 256), (3, 257)]
    assert rig.runs(Family.VISIBILITY_INDEX) == [run_of(ids, 3)]
    rig.assert_sound()


def test_add_with_an_origin_and_duplicates_begins_a_block_after_each_gap(
    rig: Rig, load: LoadRef
) -> None:
    known = list(rig.add_items(NewItems([b"1", b"2"], keys=["k", "l"])).ids)
    contents = [b"%d" % n for n in range(9)]
    keys = ["a", "b", "k", "c", "c", "", "", "l", "d"]

    added = rig.add_items(NewItems(contents, keys=keys, origin=Origin(load, 3, row=100)))

    assert added.duplicates == [False, False, True, False, True, False, False, True, False]
    assert (added.ids[2], added.ids[4], added.ids[7]) == (known[0], added.ids[3], known[1])
    new = [0, 1, 3, 5, 6, 8]
    assert rows_of([added.ids[at] for at in new]) == [(3, 100 + at) for at in new]
    assert rig.stored_ids() == [*known, *[added.ids[at] for at in new]]
    stretches = [[0, 1], [3], [5, 6], [8]]
    assert rig.dump()["items"][1:] == [
        (
            rig.queue.prefix + added.ids[of[-1]],
            encode_block(
                [contents[at] for at in of], [keys[at].encode() for at in of], [b""] * len(of)
            ),
        )
        for of in stretches
    ]
    sizes = [sum(len(contents[at]) + len(keys[at]) for at in of) for of in stretches]
    assert rig.runs(Family.VISIBILITY_INDEX)[1:] == [
        run_of([added.ids[at] for at in of], size, MarkFields(flags=1))
        for of, size in zip(stretches, sizes, strict=True)
    ]
    rig.assert_sound()
    polled = rig.poll(20)
    assert polled.contents == [b"1", b"2", *[contents[at] for at in new]]
    assert polled.details.keys == ["k", "l", *[keys[at] for at in new]]


@pytest.mark.usefixtures("load")
def test_add_with_duplicates_and_no_origin_has_no_gaps(rig: Rig) -> None:
    rig.add_items(NewItems([b"1"], keys=["k"]))

    added = rig.add_items(NewItems([b"a", b"b", b"c"], keys=["", "k", "m"]))

    new = [added.ids[0], added.ids[2]]
    assert new[1] == shifted(new[0], 1)
    assert rig.runs(Family.VISIBILITY_INDEX)[1:] == [run_of(new, 3, MarkFields(flags=1))]
    rig.assert_sound()


def test_rows_around_a_gap_are_cancelled_each_by_its_id(rig: Rig, load: LoadRef) -> None:
    rig.add_items(NewItems([b"1"], keys=["k"]))
    items = NewItems([b"x"] * 5, keys=["", "", "k", "", ""], origin=Origin(load, 0, row=0))
    ids = rig.add_items(items).ids
    gap = shifted(ids[1], 1)

    cancelled = cancel(rig.engine, rig.queue, [ids[1], gap, ids[3]], rig.now_ms)

    assert cancelled == [True, False, True]
    assert rig.ready_ids()[1:] == [ids[0], ids[4]]
    rig.assert_sound()
