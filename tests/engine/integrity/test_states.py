"""What entries say of runs, as the check and the rebuild read it."""

import pytest

from queueber.db.families import Family
from queueber.db.records.dead_letters import encode_dead
from queueber.db.records.keys import due_part, level_part
from queueber.db.records.leases import encode_lease
from queueber.db.records.remembered import ids_digest
from queueber.db.records.runs import (
    MarkFields,
    Run,
    encode_held,
    encode_mark,
    encode_run,
    make_run,
)
from queueber.engine.integrity.states import (
    NO_ITEMS,
    LiveItems,
    StateRun,
    block_of,
    read_states,
)
from queueber.ids import ItemId

LAST = ItemId(bytes(8) + (1000).to_bytes(8))
RUN = make_run(LAST, 2, 1, 5, 77, encode_mark(MarkFields(batch=3)))
DUE = due_part(5, LAST)


@pytest.mark.parametrize(
    ("family", "key", "value", "expected"),
    [
        (
            Family.VISIBILITY_INDEX,
            level_part(4) + DUE,
            encode_run(RUN),
            [StateRun(Family.VISIBILITY_INDEX, RUN, DUE, 4)],
        ),
        (Family.DELAYED, DUE, encode_run(RUN), [StateRun(Family.DELAYED, RUN, DUE)]),
        (
            Family.DEAD,
            LAST,
            encode_dead(9, 2, RUN),
            [StateRun(Family.DEAD, RUN, died=(9, 2))],
        ),
        (
            Family.LEASES,
            bytes(16),
            encode_lease(9, encode_held([RUN, RUN])),
            [StateRun(Family.LEASES, RUN)] * 2,
        ),
    ],
)
def test_entries_are_read_as_runs(
    family: Family, key: bytes, value: bytes, expected: list[StateRun]
) -> None:
    assert read_states(family, key, value) == expected


@pytest.mark.parametrize(
    ("run", "block"),
    [
        (RUN, LAST[:8] + (1002).to_bytes(8)),
        (make_run(LAST, 4, 1, 5, 77, RUN.mark), LAST),
        (make_run(LAST, 5, 1, 5, 77, RUN.mark), None),
        (make_run(LAST, 0, 1, 5, 77, RUN.mark), None),
        (make_run(LAST, 2, 6, 5, 77, RUN.mark), None),
    ],
)
def test_block_of_a_run_is_known_if_there_can_be_one(run: Run, block: bytes | None) -> None:
    assert block_of(run) == block


def test_live_items_of_a_batch_add_up() -> None:
    live = NO_ITEMS.plus(RUN).plus(RUN)

    assert live == LiveItems(4, 2 * ids_digest(LAST, 2))
