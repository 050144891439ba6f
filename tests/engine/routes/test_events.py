"""Every operation that changes items publishes one event for each, in the same write."""

from dataclasses import replace

import pytest

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.cancel import cancel
from queueber.engine.queue.complete import complete, complete_whole
from queueber.engine.queue.expire import expire_leases
from queueber.engine.queue.extend import extend
from queueber.engine.queue.fail import fail
from queueber.engine.queue.purge import purge
from queueber.engine.queue.redrive import redrive, redrive_first
from queueber.engine.queue.release import release, release_lease
from queueber.engine.queue.remove import remove, remove_whole
from queueber.engine.queue.settle import Outcomes
from queueber.engine.topics.together import QueueStep, together
from queueber.errors import FailedPrecondition, Unavailable
from queueber.limits import HOUR_MS
from queueber.model import (
    Callback,
    EventPayload,
    GroupKind,
    ItemOptions,
    ItemState,
    NewItems,
    NewMessages,
    On,
    Producer,
    Publication,
    Schedule,
)
from tests.support.callbacks import when_complete
from tests.support.operations import cancel_batch, cancel_key, configure_queue
from tests.support.route_rig import QUEUE, RouteRig, of
from tests.support.schedules import put_schedule


def _fail(rig: RouteRig, error: str = "boom", delay_ms: int | None = None) -> bytes:
    """Lease an item and let it fail."""
    polled = rig.lease()
    ids = list(polled.ids)
    rig.run_on(rig.queue, fail, ids, [polled.lease_id], [error], [delay_ms])
    return ids[0]


def test_an_add_has_an_event_for_each_item_in_order(rig: RouteRig) -> None:
    rig.route()
    added = rig.add(b"a", b"b", delays_ms=[0, 500], keys=["k", ""])

    assert rig.changes() == of("added", added.ids)
    first, second = rig.events()
    assert first.key == "k"
    assert first.payload == {"id": added.ids[0].hex(), "key": "k"}
    assert second.key == added.ids[1].hex()
    assert second.payload == {"id": added.ids[1].hex(), "key": None}
    assert first.attributes == {
        "queueber.queue": "q",
        "queueber.op": "insert",
        "queueber.change": "added",
        "queueber.id": added.ids[0].hex(),
        "queueber.attempt": "1",
        "queueber.payload": "key",
    }


def test_what_is_not_added_has_no_event(rig: RouteRig) -> None:
    rig.route()
    rig.add(b"a", keys=["k"], producer=Producer("p", 1, 1))

    rig.add(b"a", keys=["k"], producer=Producer("p", 1, 1))
    rig.add(b"b", keys=["k"])

    assert rig.words() == ["added"]


def test_polls_extends_and_delays_that_end_have_no_events(rig: RouteRig) -> None:
    rig.route()
    rig.add(b"a", delays_ms=[10])
    rig.now_ms += 10
    rig.sweep()
    polled = rig.lease()

    rig.run_on(rig.queue, extend, [polled.lease_id], [5000])

    assert len(polled.ids) == 1
    assert rig.words() == ["added"]


@pytest.mark.parametrize("is_whole", [False, True])
def test_completed_and_removed_items_have_events_with_their_contents(
    rig: RouteRig, is_whole: bool
) -> None:
    rig.route(On.DELETE, payload=EventPayload.FULL)
    rig.add(b"a", b"b", b"c", b"d", attributes=[{"x": "1"}, {}, {}, {}])
    first, second = rig.lease(2), rig.lease(2)

    if is_whole:
        rig.run_on(rig.queue, complete_whole, [first.lease_id], [2], [b"", b""])
        rig.run_on(rig.queue, remove_whole, [second.lease_id], [2])
    else:
        rig.run_on(rig.queue, complete, list(first.ids), [first.lease_id] * 2, [b"", b""])
        rig.run_on(rig.queue, remove, list(second.ids), [second.lease_id] * 2)

    assert rig.changes() == of("completed", first.ids) + of("removed", second.ids)
    assert [each.payload for each in rig.events()] == [b"a", b"b", b"c", b"d"]
    assert [each.attributes.get("x") for each in rig.events()] == ["1", None, None, None]


def test_a_failed_item_has_what_changed_and_its_death_is_a_delete(rig: RouteRig) -> None:
    rig.route(payload=EventPayload.DIFF)
    rig.add(b'{"n": 1}', keys=["k"], priorities=[7], batch="b")
    _fail(rig)
    rig.now_ms += 50
    rig.sweep()
    failed_at_ms = rig.now_ms - 50
    _fail(rig, "again")

    added, failed, dead = rig.events()
    assert added.payload == {
        "state": [None, "ready"],
        "attempt": [None, 1],
        "priority": [None, 7],
        "key": [None, "k"],
        "batch": [None, "b"],
        "bytes": [None, 8],
        "contents": [None, '{"n": 1}'],
    }
    assert failed.payload == {
        "state": ["leased", "delayed"],
        "attempt": [1, 2],
        "visible_at_ms": [None, failed_at_ms + 50],
        "error": [None, "boom"],
    }
    assert dead.payload == {
        "state": ["leased", "dead"],
        "attempt": [2, 3],
        "error": ["boom", "again"],
    }
    words = [(e.attributes["queueber.op"], e.change) for e in (added, failed, dead)]
    assert words == [("insert", "added"), ("update", "failed"), ("delete", "dead")]
    assert [e.attributes["queueber.attempt"] for e in (added, failed, dead)] == ["1", "1", "2"]


def test_redriven_letters_have_updates_and_deleted_ones_deletes(rig: RouteRig) -> None:
    rig.add(b"a", b"b", b"c", delays_ms=[0, 0, 0])
    ids = []
    for _ in range(3):
        polled = rig.lease()
        ids.append(polled.ids[0])
        lease = [polled.lease_id]
        rig.run_on(rig.queue, fail, [ids[-1]], lease, ["x"], [0])
        polled = rig.lease()
        rig.run_on(rig.queue, fail, [ids[-1]], [polled.lease_id], ["x"], [0])
    rig.route(payload=EventPayload.DIFF)

    rig.run_on(rig.queue, redrive, [ids[0]])
    rig.run_on(rig.queue, redrive_first, 1)
    rig.run_on(rig.queue, purge, ItemState.DEAD, 10)

    assert rig.changes() == [("redriven", ids[0]), ("redriven", ids[1]), ("purged", ids[2])]
    assert rig.events()[0].payload == {"state": ["dead", "ready"], "attempt": [3, 1]}
    assert rig.events()[2].payload == {"state": ["dead", "gone"]}


def test_released_items_have_updates_however_they_come_back(rig: RouteRig) -> None:
    rig.route(On.UPDATE, payload=EventPayload.DIFF)
    rig.add(b"a", b"b")
    first, second = rig.lease(), rig.lease()

    rig.run_on(rig.queue, release, list(first.ids), [first.lease_id])
    rig.run_on(rig.queue, release_lease, second.lease_id)

    assert rig.changes() == of("released", [*first.ids, *second.ids])
    assert rig.events()[0].payload == {"state": ["leased", "ready"]}


def test_leases_that_run_out_have_updates_and_those_lost_together_are_quarantined(
    rig: RouteRig,
) -> None:
    rig.route(On.UPDATE, payload=EventPayload.DIFF)
    rig.add(*[b"x"] * 7)
    alone, together, lost = rig.lease(1), rig.lease(2), rig.lease(4, lease_ms=60_000)

    rig.now_ms += 1000
    rig.sweep()
    rig.run_on(rig.queue, lambda tx: expire_leases(tx, [lost.lease_id], together=4, items_max=100))

    events = {each.id: each.payload for each in rig.events()}
    assert rig.words() == ["expired"] * 7
    assert events[alone.ids[0]]["attempt"] == [1, 2]
    assert events[alone.ids[0]]["error"] == [None, "the lease ran out"]
    assert events[together.ids[0]] == {
        "state": ["leased", "ready"],
        "group_max": [None, 1],
        "error": [None, "the lease ran out"],
    }
    assert events[lost.ids[3]]["group_max"] == [None, 2]


def test_cancel_and_purge_have_deletes_that_say_where_the_item_was(rig: RouteRig) -> None:
    rig.route(On.DELETE, payload=EventPayload.DIFF)
    added = rig.add(*[b"x"] * 5, delays_ms=[0, 0, 900, 900, 0])
    leased = rig.lease()
    ids = [leased.ids[0], added.ids[1], added.ids[2]]

    rig.run_on(rig.queue, cancel, [*ids, bytes(16)])
    rig.run_on(rig.queue, purge, ItemState.DELAYED, 10)
    rig.run_on(rig.queue, purge, ItemState.READY, 10)

    said = [(each.change, each.id, each.payload["state"][0]) for each in rig.events()]
    assert said == [
        ("cancelled", ids[0], "leased"),
        ("cancelled", ids[1], "ready"),
        ("cancelled", ids[2], "delayed"),
        ("purged", added.ids[3], "delayed"),
        ("purged", added.ids[4], "ready"),
    ]


def test_steps_taken_together_have_their_events_behind_what_they_publish(rig: RouteRig) -> None:
    rig.route()
    rig.add(b"a", b"b")
    polled = rig.lease(2)
    done, failed = polled.ids
    outcomes = Outcomes(
        [done], [polled.lease_id], [b"r"], [failed], [polled.lease_id], ["e"], [None]
    )
    step = QueueStep(rig.queue, NewItems([b"new"]), outcomes)
    publication = Publication("t", NewMessages([b"own"]), expected_offset=2)

    made = rig.run(together, rig.topics, [(rig.topic, publication)], [], [step])

    assert list(made.published[0].offsets) == [2]
    assert [payload for _, payload in rig.read()][2] == b"own"
    behind = [(offset, payload) for offset, payload in rig.read() if offset > 2]
    assert len(behind) == 3
    assert rig.topics.sequences.last == 6
    rig.reopen()
    assert rig.topics.sequences.last == 6


def test_bridged_messages_have_events_when_they_become_items(rig: RouteRig) -> None:
    rig.route(On.INSERT, payload=EventPayload.FULL)
    rig.run(rig.topics.create, "orders", rig.topic.settings)
    rig.name = "orders"
    rig.create_group("bridge", GroupKind.QUEUE, queue="q")
    rig.publish(b"1", b"2")
    rig.sweep()
    rig.name = "t"

    assert [(each.change, each.payload) for each in rig.events()] == [
        ("added", b"1"),
        ("added", b"2"),
    ]


def test_items_of_schedules_and_callbacks_have_events(rig: RouteRig) -> None:
    rig.route(On.INSERT, payload=EventPayload.FULL)
    batch = rig.add(b"work", batch="b").ids
    when_complete(rig.engine, rig.queue, "b", Callback(QUEUE, b"report"), rig.now_ms)
    put_schedule(rig.engine, Schedule("hourly", "@hourly", QUEUE, b"tick"), rig.now_ms)
    rig.run_on(rig.queue, remove, list(batch), [rig.lease().lease_id])
    rig.sweep()
    rig.now_ms += HOUR_MS
    rig.sweep()

    found = [(each.change, each.payload) for each in rig.events()]
    assert found == [("added", b"work"), ("added", b"report"), ("added", b"tick")]
    assert "queueber.schedule" in rig.events()[2].attributes


def test_items_of_a_batch_or_key_that_are_cancelled_have_deletes(rig: RouteRig) -> None:
    rig.route(On.DELETE)
    ids = rig.add(b"1", b"2", b"3", keys=["", "", "k"], batch="b").ids
    rig.add(b"4", keys=["other"])

    assert cancel_key(rig.engine, rig.queue, "k", rig.now_ms)
    cancel_batch(rig.engine, rig.queue, "b", ItemState.READY, b"", 10, rig.now_ms)

    assert rig.changes() == [("cancelled", ids[2]), *of("cancelled", ids[:2])]


def test_items_that_wait_or_that_nobody_takes_in_time_die_with_one_event(rig: RouteRig) -> None:
    rig.route(payload=EventPayload.DIFF)
    first = rig.add(b"1", options=[ItemOptions(expires_ms=100)]).ids[0]
    second = rig.run_on(rig.queue, add, NewItems([b"2"], after=[first])).ids[0]
    rig.now_ms += 100
    rig.sweep()
    rig.now_ms += 100
    rig.sweep()

    assert rig.changes() == [
        ("added", first), ("added", second), ("dead", first), ("dead", second)
    ]  # fmt: skip
    states = [each.payload["state"] for each in rig.events()]
    assert states[2:] == [["ready", "dead"], ["delayed", "dead"]]


def test_letters_that_are_too_old_are_purged_with_an_event(rig: RouteRig) -> None:
    rig.route(On.DELETE)
    item = rig.add(b"x", options=[ItemOptions(attempts_max=1)]).ids[0]
    _fail(rig)
    settings = replace(rig.queue.settings, dead_age_ms=1000)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    rig.now_ms += 2000
    rig.sweep()

    assert rig.changes() == [("dead", item), ("purged", item)]


def test_a_write_that_the_store_refuses_has_neither_change_nor_event(
    rig: RouteRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.route()
    rig.add(b"a")
    before, events = rig.dump(), rig.events()
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", _refuse)
        with pytest.raises(Unavailable):
            rig.add(b"b")

    assert (rig.dump(), rig.events()) == (before, events)
    assert rig.queue.counters.ready == 1


def _refuse(_: object) -> None:
    raise Unavailable("the disk is full")


def test_a_change_that_is_refused_has_no_event(rig: RouteRig) -> None:
    rig.route()
    rig.add(b"a")
    outcomes = Outcomes([bytes(16)], [bytes(16)], [b""])
    with pytest.raises(FailedPrecondition):
        rig.run(together, rig.topics, [], [], [QueueStep(rig.queue, NewItems([b"n"]), outcomes)])
    tx = Transaction(rig.kernel, rig.now_ms, rig.queue)
    assert remove(tx, [bytes(16)], [bytes(16)]) == [False]
    tx.commit()

    assert rig.words() == ["added"]
