"""Names and numbers of batches: found in memory or in the store, and few are kept."""

import pytest

from queueber.model import NewItems
from tests.support.operations import batch_name
from tests.support.rig import Rig


def test_batch_name_is_found_by_number_with_and_without_memory(rig: Rig) -> None:
    rig.add_items(NewItems([b"x"], batch="größe"))
    polled = rig.poll()
    assert polled.details.batches == ["größe"]

    rig.reopen()

    assert batch_name(rig.engine, rig.queue, 1) == "größe"
    assert batch_name(rig.engine, rig.queue, 1) == "größe"
    assert batch_name(rig.engine, rig.queue, 0) == batch_name(rig.engine, rig.queue, 9) == ""


def test_names_kept_in_memory_do_not_grow_without_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.records.batch_names._NAMES_KEPT", 3)
    for n in range(10):
        rig.add_items(NewItems([b"x"], batch=f"b{n}"))

    names = [name for _ in range(10) for name in rig.poll().details.batches]

    assert names == [f"b{n}" for n in range(10)]
    assert len(rig.queue.batches.names._names) <= 3
