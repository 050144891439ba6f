"""The log, its trimming and its checker: through any steps all is what a plain list would be."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.records.keys import queue_prefix
from queueber.db.store.contract import Batch, Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.logs import check_log
from queueber.engine.log import Log, open_log, read, reader_offset
from queueber.errors import Unavailable
from tests.support.folders import quick_folder, remove_folder
from tests.support.log_model import LARGE, LogModel, append_rows
from tests.support.operations import acknowledge, drop_reader, trim, trim_due_ms

Step = tuple[Any, ...]

log_numbers = iter(range(1, 1_000_000))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


small = st.integers(0, 12)
limits = st.integers(0, 40)
rows_of_any_kind = st.lists(st.binary(max_size=6), max_size=4)
readers = st.sampled_from(["a", "b", "ü"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), rows_of_any_kind, small),
        st.tuples(st.just("acknowledge"), readers, st.integers(0, 60)),
        st.tuples(st.just("drop"), readers),
        st.tuples(st.just("trim"), small, small, limits),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("refuse"), rows_of_any_kind),
    ),
    min_size=4,
    max_size=30,
)


def take_step(store: Store, log: Log, model: LogModel, step: Step, now_ms: int) -> Log:
    match step:
        case ("append", rows, back_ms):
            # The clock may have been set back since the last append.
            append_rows(store, log, rows, now_ms - back_ms)
            model.append(rows, now_ms - back_ms)
        case ("acknowledge", reader, offset):
            acknowledge(store, log, reader, min(offset, model.end))
            model.acknowledge(reader, min(offset, model.end))
        case ("drop", reader):
            was_known = model.readers.pop(reader, None) is not None
            assert drop_reader(store, log, reader) == was_known
        case ("trim", later_ms, age_ms, bytes_max):
            at_ms = now_ms + later_ms
            due_ms = trim_due_ms(log, now_ms=at_ms, age_ms=age_ms, bytes_max=bytes_max)
            deleted = model.trim(at_ms, age_ms, bytes_max)
            assert (due_ms <= at_ms) == (deleted > 0)
            assert trim(store, log, at_ms, age_ms=age_ms, bytes_max=bytes_max) == deleted
        case ("reopen",):
            return open_log(store, log.prefix)
        case ("refuse", rows):
            refuse_everything(store, log, rows, now_ms)
    return log


def refuse_write(batch: Batch) -> NoReturn:
    """Stands for `Store.write` on a disk that is full."""
    raise Unavailable("the disk of the data directory is full")


def refuse_everything(store: Store, log: Log, rows: list[bytes], now_ms: int) -> None:
    before = deepcopy(log)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(store, "write", refuse_write)
        if rows:
            with pytest.raises(Unavailable):
                append_rows(store, log, rows, now_ms)
        if trim_due_ms(log, now_ms=now_ms, age_ms=1, bytes_max=1) <= now_ms:
            with pytest.raises(Unavailable):
                trim(store, log, now_ms, age_ms=1, bytes_max=1)
        with pytest.raises(Unavailable):
            acknowledge(store, log, "new", log.head.next_offset)
        for reader in before.readers:
            with pytest.raises(Unavailable):
                drop_reader(store, log, reader)
    assert log == before == open_log(store, log.prefix)


@settings(max_examples=200, deadline=None)
@given(steps=steps, rows_max=st.integers(1, 9), bytes_max=limits)
def test_log_through_any_steps_is_what_a_list_would_be(
    store: Store, steps: list[Step], rows_max: int, bytes_max: int
) -> None:
    log = open_log(store, queue_prefix(next(log_numbers)))
    model = LogModel()

    for now_ms, step in enumerate(steps, 100):
        log = take_step(store, log, model, step, now_ms)

        assert list(check_log(store, log.prefix)) == []
        assert (log.head.first_offset, log.head.next_offset) == (model.first, model.end)
        assert log.readers == model.readers
        for reader in ("a", "nobody"):
            assert reader_offset(log, reader) == model.readers.get(reader, model.first)
        for offset in range(model.end + 1):
            found = read(store, log, offset, rows_max=rows_max, bytes_max=bytes_max)
            expected = model.read(offset, rows_max, bytes_max)
            assert list(zip(found.times_ms, found.rows, strict=True)) == expected
            assert found.first_offset == max(offset, model.first)
            assert found.next_offset == found.first_offset + len(found.rows)
            assert found.missed == found.first_offset - offset
        every = read(store, log, 0, rows_max=LARGE, bytes_max=LARGE).rows
        assert every == [row for block in model.blocks for row in block.rows]
