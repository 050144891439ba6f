"""Runs as they are stored: in an index, in a lease, among the dead; and the failures of an item."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.dead_letters import decode_dead, encode_dead
from queueber.db.records.keys import split_due_part
from queueber.db.records.runs import (
    HELD_BYTES,
    RUN_BYTES,
    Run,
    decode_entry,
    decode_held,
    decode_run,
    encode_held,
    encode_run,
    entry_at,
    make_run,
)
from tests.support.entries import plain_run

numbers = st.integers(0, (1 << 64) - 1)
shorts = st.integers(0, (1 << 16) - 1)
ids = st.binary(min_size=16, max_size=16)
any_run = st.builds(
    make_run,
    last=ids.filter(lambda each: b"\1" < each[8:9] < b"\xff"),
    count=shorts,
    at=shorts,
    span=shorts,
    size=st.integers(0, (1 << 32) - 1),
    mark=st.binary(min_size=10, max_size=10),
)
NOW_MS = 1_700_000_000_000


@given(run=any_run, at_ms=numbers)
def test_run_round_trips_with_its_last_id_in_the_key(run: Run, at_ms: int) -> None:
    due, _ = entry_at(at_ms, run)
    value = encode_run(run)

    assert len(value) == RUN_BYTES
    assert split_due_part(due) == (at_ms, run.last)
    assert decode_run(run.last, value) == run
    assert decode_entry(due, value) == entry_at(at_ms, run) == (due, run)


@given(runs=st.lists(any_run, max_size=5))
def test_held_runs_round_trip_in_order(runs: list[Run]) -> None:
    held = encode_held(runs)

    assert decode_held(held) == runs
    assert len(held) == HELD_BYTES * len(runs)
    assert held == b"".join(run.last + encode_run(run) for run in runs)


@given(died_at_ms=numbers, reason=st.integers(0, 255), run=any_run)
def test_dead_round_trips(died_at_ms: int, reason: int, run: Run) -> None:
    value = encode_dead(died_at_ms, reason, run)

    assert decode_dead(run.last, value) == (died_at_ms, reason, run)
    assert value.endswith(encode_run(run))


@pytest.mark.parametrize("change", [-1, 1])
def test_runs_of_another_width_are_refused(change: int) -> None:
    run = plain_run(bytes(16), 3)

    for value in (encode_run(run), encode_held([run, run]), encode_dead(NOW_MS, 1, run)):
        changed = (value + b"\0") if change > 0 else value[:-1]
        with pytest.raises(struct.error):
            decode_run(run.last, changed)
        with pytest.raises(struct.error):
            decode_held(changed)
        with pytest.raises(struct.error):
            decode_dead(run.last, changed)
