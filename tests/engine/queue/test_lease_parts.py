"""Parts of a lease: items of a run that fail, come back or end apart from the others."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import MarkFields, Run, decode_held, encode_run
from queueber.limits import BLOCK_ITEMS_MAX
from queueber.model import FailOutcome
from tests.engine.making import PLAIN, come_back_at_once, parts_of, run_of
from tests.support.operations import expire, release
from tests.support.rig import Rig

COUNT = 7
CONTENTS = [b"%d" % n * (n + 1) for n in range(COUNT)]


RELEASED = MarkFields(uncharged=1)


def parts(ids: Sequence[bytes], left: Sequence[int], mark: MarkFields = PLAIN) -> list[Run]:
    return parts_of(ids, CONTENTS, left, mark)


def test_parts_of_a_lease_fail_come_back_and_run_out_each_as_it_should(rig: Rig) -> None:
    ids = rig.add(*CONTENTS)
    lease_id = rig.poll(COUNT, lease_ms=100).lease_id
    failed = MarkFields(attempts=1)

    assert rig.fail([ids[3], ids[2]], lease_id, delay_ms=0) == [FailOutcome.RETRIED] * 2
    assert rig.runs(Family.VISIBILITY_INDEX) == parts(ids, [2, 3], failed)
    assert rig.runs(Family.LEASES) == parts(ids, [0, 1, 4, 5, 6])
    rig.assert_sound()

    rig.now_ms += 1
    assert rig.release([ids[5]], lease_id) == [True]
    assert rig.fail([ids[6]], lease_id, delay_ms=500) == [FailOutcome.RETRIED]
    assert rig.runs(Family.LEASES) == parts(ids, [0, 1, 4])
    assert rig.runs(Family.DELAYED) == parts(ids, [6], failed)
    rig.assert_sound()

    rig.now_ms += 100
    assert expire(rig.engine, rig.queue, rig.now_ms, 100)[0] == 3
    assert rig.runs(Family.VISIBILITY_INDEX) == [
        *parts(ids, [2, 3], failed),
        *parts(ids, [5], RELEASED),
        *parts(ids, [0, 1, 4], MarkFields(group_max=1, uncharged=1)),
    ]
    assert rig.keys(Family.LEASES) == rig.keys(Family.HOLDERS) == []
    rig.assert_sound()


def test_last_item_of_a_run_that_runs_out_alone_is_charged(rig: Rig) -> None:
    come_back_at_once(rig)
    ids = rig.add(*CONTENTS)
    lease_id = rig.poll(COUNT, lease_ms=100).lease_id
    rig.remove([*ids[:3], *ids[4:]], lease_id)
    rig.now_ms += 100

    assert expire(rig.engine, rig.queue, rig.now_ms, 100)[0] == 1

    assert rig.runs(Family.VISIBILITY_INDEX) == parts(ids, [3], MarkFields(attempts=1))
    assert rig.poll().contents == [CONTENTS[3]]
    rig.assert_sound()


def test_items_that_come_back_in_one_call_are_one_run_again(rig: Rig) -> None:
    ids = rig.add(*CONTENTS)
    leases = [polled.lease_id for polled in rig.poll_many([2, 1, 4])]
    asked = [(ids[at], leases[0 if at < 2 else 1 if at < 3 else 2]) for at in (6, 0, 3, 2, 1, 5, 4)]
    rig.now_ms += 5

    released = release(
        rig.engine, rig.queue, [i for i, _ in asked], [of for _, of in asked], rig.now_ms
    )

    assert released == [True] * COUNT
    key = rig.queue.prefix + b"\4" + due_part(rig.now_ms, ids[6])
    (whole,) = parts(ids, range(COUNT), RELEASED)
    assert rig.dump()["visibility_index"] == [(key, encode_run(whole))]
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[6], rig.now_ms.to_bytes(8))]
    rig.assert_sound()


def test_items_that_come_back_apart_stay_apart_in_the_index_and_are_joined_in_a_lease(
    rig: Rig,
) -> None:
    ids = rig.add(*CONTENTS)
    for polled in rig.poll_many([3, 4]):
        rig.release(polled.ids, polled.lease_id)
    assert rig.runs(Family.VISIBILITY_INDEX) == [
        *parts(ids, range(3), RELEASED),
        *parts(ids, range(3, 7), RELEASED),
    ]

    polled = rig.poll(COUNT)

    assert rig.runs(Family.LEASES) == parts(ids, range(COUNT), RELEASED)
    assert polled.contents == CONTENTS
    rig.assert_sound()


def test_items_of_different_blocks_or_marks_are_not_joined(rig: Rig) -> None:
    one = rig.add(*CONTENTS)
    two = rig.add(*CONTENTS)
    lease_id = rig.poll(1).lease_id
    rig.fail(one[:1], lease_id, delay_ms=0)
    assert rig.runs(Family.VISIBILITY_INDEX)[0] == parts(one, [0], MarkFields(attempts=1))[0]
    lease_id = rig.poll(2 * COUNT).lease_id
    rig.now_ms += 5

    assert rig.release([*two, *one], lease_id) == [True] * 2 * COUNT

    assert rig.runs(Family.VISIBILITY_INDEX) == [
        *parts(one, [0], MarkFields(attempts=1, uncharged=1)),
        *parts(one, range(1, COUNT), RELEASED),
        *parts(two, range(COUNT), RELEASED),
    ]
    rig.assert_sound()


def test_item_in_the_middle_of_each_of_several_blocks_leaves_the_lease_with_their_sides(
    rig: Rig,
) -> None:
    ids = rig.add(*[b"x"] * (3 * BLOCK_ITEMS_MAX))
    polled = rig.poll(3 * BLOCK_ITEMS_MAX)
    blocks = [ids[BLOCK_ITEMS_MAX * n : BLOCK_ITEMS_MAX * (n + 1)] for n in range(3)]
    gone = [blocks[0][100], *blocks[1], blocks[2][0]]

    assert rig.remove(gone, polled.lease_id) == [True] * len(gone)

    ((_, entry),) = rig.dump()["leases"]
    assert decode_held(decode_lease(entry)[1]) == [
        run_of(blocks[0][:100], 100, span=BLOCK_ITEMS_MAX),
        run_of(blocks[0][101:], BLOCK_ITEMS_MAX - 101, at=101),
        run_of(blocks[2][1:], BLOCK_ITEMS_MAX - 1, at=1),
    ]
    assert [key[4:20] for key in rig.keys(Family.HOLDERS)] == [blocks[0][-1], blocks[2][-1]]
    assert [key[4:] for key in rig.keys(Family.ITEMS)] == [blocks[0][-1], blocks[2][-1]]
    rig.assert_sound()
