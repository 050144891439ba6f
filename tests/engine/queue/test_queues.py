"""Queues: created once, configured, deleted with all they hold, and counted."""

from dataclasses import replace

import pytest

from queueber.db.families import QUEUE_FAMILIES
from queueber.db.records.keys import NEVER_MS, split_queue_prefix
from queueber.db.records.loads import LoadRecord
from queueber.db.records.queues import decode_queue
from queueber.errors import AlreadyExists, NotFound, ResourceExhausted
from queueber.limits import QUEUES_MAX
from queueber.model import (
    FailOutcome,
    LoadRef,
    NewItems,
    Producer,
    QueueSettings,
    Stats,
)
from tests.engine.making import (
    expire_one,
    own_options_and_callback,
    park_one,
    schedule_one,
    wait_for_one,
)
from tests.support.operations import (
    add,
    begin_load,
    configure_queue,
    create_queue,
    delete_queue,
    pause,
    route_queue,
)
from tests.support.rig import QUEUE, START_MS, Rig

SETTINGS = QueueSettings(items_max=5, bytes_max=1000, item_bytes_max=100)


def create(rig: Rig, name: str, settings: QueueSettings | None = None) -> bool:
    return create_queue(rig.engine, name, settings or QueueSettings(), rig.now_ms)


def fill_every_family(rig: Rig) -> None:
    rig.add_items(
        NewItems(
            [b"done", b"dead", b"held", b"ready", b"delayed"],
            delays_ms=[0, 0, 0, 0, 500],
            keys=["", "", "", "", "k"],
            batch="b",
            producer=Producer("p", 0, 1),
        )
    )
    done, dead, _ = rig.poll_many([1, 1, 1])
    rig.complete(done.ids, done.lease_id)
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, attempts_max=1), rig.now_ms)
    assert rig.fail(dead.ids, dead.lease_id) == [FailOutcome.DIED]
    configure_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)
    begin(rig, "load")
    route_queue(rig.engine, QUEUE, rig.now_ms)
    own_options_and_callback(rig)
    park_one(rig)
    schedule_one(rig)
    expire_one(rig)
    wait_for_one(rig)


def begin(rig: Rig, name: str) -> LoadRecord:
    ref = LoadRef(name)
    load = begin_load(
        rig.engine, rig.queue, ref, batch="", timeout_ms=500, token=b"", now_ms=rig.now_ms
    )
    assert isinstance(load, LoadRecord)
    return load


# --- create ---------------------------------------------------------------------------------------


def test_create_queue_stores_its_name_and_settings(rig: Rig) -> None:
    assert create(rig, "new", SETTINGS)

    records = dict(rig.dump()["queues"])
    new = rig.engine.queues.get("new")
    assert decode_queue(records[new.prefix]) == ("new", rig.now_ms, SETTINGS, 0)
    assert new.settings == SETTINGS
    rig.assert_sound()


def test_create_queue_again_with_the_same_settings_changes_nothing(rig: Rig) -> None:
    create(rig, "new", SETTINGS)
    disk, memory = rig.dump(), rig.memory()
    rig.now_ms += 10

    assert not create(rig, "new", SETTINGS)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_create_queue_again_with_other_settings_is_refused_and_changes_nothing(rig: Rig) -> None:
    create(rig, "new", SETTINGS)
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(AlreadyExists, match="'new' exists with other settings"):
        create(rig, "new", QueueSettings(items_max=6))

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_create_queue_past_the_limit_is_refused_and_changes_nothing(rig: Rig) -> None:
    for n in range(QUEUES_MAX - 1):
        create(rig, f"q{n}")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=rf"has {QUEUES_MAX} queues, the limit"):
        create(rig, "one-more")

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert not create(rig, "q0"), "one that exists is no new one"
    delete_queue(rig.engine, "q0")
    assert create(rig, "one-more")


def test_create_queue_gives_each_a_number_of_its_own_for_ever(rig: Rig) -> None:
    numbers = []
    for n in range(4):
        create(rig, "again")
        numbers.append(rig.engine.queues.get("again").queue_id)
        delete_queue(rig.engine, "again")
        if n == 1:
            rig.reopen()

    assert numbers == sorted(set(numbers))
    assert min(numbers) > rig.queue.queue_id


# --- configure ------------------------------------------------------------------------------------


def test_configure_queue_binds_later_adds_and_keeps_what_is_stored(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")

    configure_queue(rig.engine, QUEUE, QueueSettings(items_max=2), rig.now_ms)

    with pytest.raises(ResourceExhausted):
        rig.add(b"d")
    assert rig.ready_ids() == ids
    rig.assert_sound()


def test_configure_queue_to_no_limit_lifts_it(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(items_max=1), rig.now_ms)
    rig.add(b"a")

    configure_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)

    rig.add(b"b")


def test_configure_queue_survives_a_reopen_with_the_time_of_creation(rig: Rig) -> None:
    rig.now_ms += 50
    configure_queue(rig.engine, QUEUE, SETTINGS, rig.now_ms)

    rig.reopen()

    assert rig.queue.settings == SETTINGS
    assert rig.queue.created_at_ms == START_MS


def test_configure_queue_that_is_paused_leaves_it_paused(rig: Rig) -> None:
    pause(rig.engine, rig.queue, rig.now_ms + 50)

    configure_queue(rig.engine, QUEUE, SETTINGS, rig.now_ms)
    rig.reopen()

    assert rig.queue.paused_until_ms == rig.now_ms + 50
    assert rig.queue.settings == SETTINGS


def test_configure_queue_that_does_not_exist_is_not_found_and_changes_nothing(rig: Rig) -> None:
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(NotFound, match="there is no queue 'missing'"):
        configure_queue(rig.engine, "missing", SETTINGS, rig.now_ms)

    assert rig.dump() == disk
    assert rig.memory() == memory


# --- delete ---------------------------------------------------------------------------------------


def test_delete_queue_leaves_nothing_of_it_in_any_family(rig: Rig) -> None:
    fill_every_family(rig)
    prefix = rig.queue.prefix
    assert all(rig.keys(family) for family in QUEUE_FAMILIES)

    assert delete_queue(rig.engine, QUEUE)

    for family in QUEUE_FAMILIES:
        assert not [key for key in rig.keys(family) if key.startswith(prefix)]
    assert rig.engine.agenda.next_ms() == NEVER_MS
    rig.assert_sound()


def test_delete_queue_names_the_files_of_its_loads_to_be_deleted(rig: Rig) -> None:
    loads = [begin(rig, name) for name in ("a", "b")]

    delete_queue(rig.engine, QUEUE)

    assert rig.engine.loads.stale_directories == [load.directory for load in loads]


def test_delete_queue_leaves_its_neighbours_untouched(rig: Rig) -> None:
    create(rig, "middle")
    create(rig, "after")
    for name in (QUEUE, "middle", "after"):
        add(rig.engine, rig.engine.queues.get(name), NewItems([b"x", b"y"], [0, 70]), rig.now_ms)
    middle = split_queue_prefix(rig.engine.queues.get("middle").prefix)
    others = {
        family: [key for key in rig.keys(family) if int.from_bytes(key[:4]) != middle]
        for family in QUEUE_FAMILIES
    }

    delete_queue(rig.engine, "middle")

    assert {family: rig.keys(family) for family in QUEUE_FAMILIES} == others
    rig.assert_sound()


def test_delete_queue_that_does_not_exist_is_false_and_changes_nothing(rig: Rig) -> None:
    disk, memory = rig.dump(), rig.memory()

    assert not delete_queue(rig.engine, "missing")

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_delete_queue_marks_the_state_that_callers_still_hold(rig: Rig) -> None:
    queue = rig.queue

    delete_queue(rig.engine, QUEUE)

    assert queue.is_deleted
    with pytest.raises(NotFound, match="there is no queue 'q'"):
        rig.engine.queues.get(QUEUE)


def test_recreated_queue_is_empty(rig: Rig) -> None:
    fill_every_family(rig)
    delete_queue(rig.engine, QUEUE)

    create(rig, QUEUE)

    assert rig.poll(10).ids == []
    assert rig.stats() == Stats(QUEUE, QueueSettings(), rig.now_ms, *[0] * 24)
    rig.now_ms += 1000
    assert rig.sweep_all() == []
    rig.assert_sound()


@pytest.mark.parametrize("reopens", [False, True])
def test_ids_after_a_delete_keep_rising_although_the_clock_stepped_back(
    rig: Rig, reopens: bool
) -> None:
    """An id that is used again could let an old lease remove a new item."""
    create(rig, "other")
    (old_id,) = rig.add(b"a")
    old_lease = rig.poll().lease_id
    delete_queue(rig.engine, QUEUE)
    rig.now_ms -= 60_000
    if reopens:
        rig.reopen()

    create(rig, QUEUE)
    (new_id,) = rig.add(b"b")

    assert new_id > old_lease > old_id


def test_delete_of_a_queue_with_older_ids_keeps_the_newest_remembered(rig: Rig) -> None:
    create(rig, "old")
    add(rig.engine, rig.engine.queues.get("old"), NewItems([b"x"]), rig.now_ms)
    (newest,) = rig.add(b"newer")
    delete_queue(rig.engine, QUEUE)
    delete_queue(rig.engine, "old")
    rig.now_ms -= 60_000
    rig.reopen()

    create(rig, QUEUE)

    assert rig.add(b"b")[0] > newest
