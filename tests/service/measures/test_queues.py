"""Metrics and histories of queues."""

from typing import Any

import pytest

from queueber.auth.callers import Caller
from queueber.errors import InvalidArgument
from queueber.limits import HOUR_MS, SAMPLE_EVERY_MS
from queueber.model import Grant, History, HistorySpan, ItemOptions, NewItems
from queueber.service.measures.metrics import NAMED_MAX, OTHER
from queueber.service.measures.queues import SERIES, TRACKED_MAX
from queueber.service.session import QueueHandle
from queueber.service.validate.arguments import check_queue_name
from queueber.service.validate.topics import check_new_topic_name
from tests.support.service_rig import ServiceRig, on_service

Values = dict[tuple[str, ...], float]


def values_of(rig: ServiceRig, metric: str) -> Values:
    (family,) = [each for each in rig.service.measures.families() if each.name == metric]
    return {sample.label_values: sample.value for sample in family.samples}


async def new_queue(rig: ServiceRig, name: str) -> QueueHandle:
    return await rig.service.queues.open_queue(name, rig.session, must_exist=False)


def sample(rig: ServiceRig, after_ms: int = SAMPLE_EVERY_MS) -> None:
    rig.clock.advance(after_ms)
    for _ in rig.service.measures.sample():
        pass


def history(rig: ServiceRig, name: str = "default", **more: Any) -> History:
    span = more.pop("span", HistorySpan.HOUR)
    found = rig.service.measures.histories([name], [], span, more.pop("points", 0), rig.session)
    return found.queues[name]


# --- metrics --------------------------------------------------------------------------------------


@on_service()
async def test_items_are_counted_by_state_and_by_operation(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    await rig.add(b"later", delay_ms=HOUR_MS)
    await rig.complete(await rig.poll_now(1))
    await rig.poll_now(1)
    late = NewItems([b"d", b"e"], options=[ItemOptions(expires_ms=100)] * 2)
    await rig.service.items.add(rig.queue, late)
    rig.clock.advance(2500)
    rig.service.sweep()

    assert values_of(rig, "queueber_queue_items") == {
        ("default", "ready"): 1,
        ("default", "delayed"): 1,
        ("default", "leased"): 1,
        ("default", "dead"): 2,
    }
    done = values_of(rig, "queueber_queue_operations_total")
    assert {operation: count for (_, operation), count in done.items() if count} == {
        "added": 6,
        "polled": 2,
        "completed": 1,
        "died": 2,
        "unclaimed": 2,
    }
    assert values_of(rig, "queueber_queue_oldest_item_seconds") == {("default",): 2.5}
    assert values_of(rig, "queueber_queue_leases") == {("default",): 1}
    assert values_of(rig, "queueber_queue_results") == {("default",): 1}
    assert values_of(rig, "queueber_queues") == {(): 1}


@on_service()
async def test_waiting_polls_and_pauses_are_seen(rig: ServiceRig) -> None:
    poll = await rig.waiting_poll()
    await rig.service.queues.pause(rig.queue, 0)

    assert values_of(rig, "queueber_queue_waiting_polls") == {("default",): 1}
    assert values_of(rig, "queueber_queue_paused") == {("default",): 1}
    assert values_of(rig, "queueber_calls_waiting") == {(): 1}
    poll.cancel()


@on_service()
async def test_many_queues_have_as_many_samples_as_there_may_be(rig: ServiceRig) -> None:
    handles = [await new_queue(rig, f"q{number}") for number in range(NAMED_MAX + 20)]
    for handle in handles[-NAMED_MAX:]:
        await rig.add(b"x", b"y", queue=handle)
    for handle in handles[:20]:
        await rig.add(b"idle", queue=handle)

    ready = values_of(rig, "queueber_queue_items")
    added = values_of(rig, "queueber_queue_operations_total")

    assert len({queue for queue, _ in ready}) == NAMED_MAX + 1
    busy = {handle.name for handle in handles[-NAMED_MAX:]}
    assert {queue for queue, _ in ready} == {*busy, "(other)"}
    assert ready["(other)", "ready"] == 20
    assert added["(other)", "added"] == 20


@on_service()
async def test_counters_of_the_others_never_fall(rig: ServiceRig) -> None:
    handles = [await new_queue(rig, f"q{number}") for number in range(NAMED_MAX + 20)]
    for handle in handles:
        await rig.add(b"x", queue=handle)
    before = values_of(rig, "queueber_queue_operations_total")
    unnamed = next(h for h in handles if (h.name, "added") not in before)

    await rig.add(*[b"y"] * 50, queue=unnamed)  # it is named from now on
    promoted = values_of(rig, "queueber_queue_operations_total")
    await rig.service.queues.delete_queue(handles[0].name, rig.session)
    after = values_of(rig, "queueber_queue_operations_total")

    assert promoted[unnamed.name, "added"] == 51
    others = [each["(other)", "added"] for each in (before, promoted, after)]
    assert others == sorted(others)


@on_service()
async def test_deleted_queue_has_no_samples(rig: ServiceRig) -> None:
    handle = await new_queue(rig, "gone")
    await rig.add(b"x", queue=handle)
    assert ("gone", "ready") in values_of(rig, "queueber_queue_items")

    await rig.service.queues.delete_queue("gone", rig.session)

    assert {queue for queue, _ in values_of(rig, "queueber_queue_items")} == {"default"}


# --- histories ------------------------------------------------------------------------------------


@on_service()
async def test_history_has_depths_and_rates_at_each_step(rig: ServiceRig) -> None:
    sample(rig)
    await rig.add(*[b"x"] * 20)
    polled = await rig.poll_now(5)
    sample(rig)
    await rig.complete(polled)
    sample(rig)

    found = history(rig)

    assert (found.end_ms, found.step_ms) == (rig.clock.now_ms(), SAMPLE_EVERY_MS)
    assert tuple(found.series) == SERIES
    assert found.series["ready"] == [0, 15, 15]
    assert found.series["leased"] == [0, 5, 0]
    assert found.series["added_per_s"] == [0, 2, 0]
    assert found.series["polled_per_s"] == [0, 0.5, 0]
    assert found.series["completed_per_s"] == [0, 0, 0.5]
    assert found.series["oldest_age_ms"] == [0, SAMPLE_EVERY_MS, 2 * SAMPLE_EVERY_MS]


@on_service()
async def test_rates_of_a_new_queue_count_from_its_first_item(rig: ServiceRig) -> None:
    sample(rig)
    handle = await new_queue(rig, "new")
    await rig.add(*[b"x"] * 10, queue=handle)
    sample(rig)

    assert history(rig, "new").series["added_per_s"] == [1]
    assert history(rig).series["added_per_s"] == [0, 0]


@on_service()
async def test_rates_of_a_queue_from_an_earlier_run_count_from_now(rig: ServiceRig) -> None:
    await rig.add(*[b"x"] * 10)
    rig.clock.advance(HOUR_MS)
    again = rig.restarted()

    sample(again)

    assert history(again).series["added_per_s"] == [0]
    assert history(again).series["ready"] == [10]


@on_service()
async def test_last_points_can_be_asked_for(rig: ServiceRig) -> None:
    for _ in range(4):
        await rig.add(b"x")
        sample(rig)

    assert history(rig, points=2).series["ready"] == [3, 4]
    assert history(rig, "unknown") == History()


@on_service()
async def test_history_of_what_the_caller_may_not_read_is_empty(rig: ServiceRig) -> None:
    for name in ("mine-1", "yours-1"):
        await new_queue(rig, name)
    sample(rig)
    assert history(rig, "yours-1").series

    rig.session.caller = Caller("me", [Grant("reader", ("mine-*",), ())])

    assert history(rig, "mine-1").series
    assert history(rig, "yours-1") == History()


@on_service()
async def test_late_sample_stands_for_those_that_were_left_out(rig: ServiceRig) -> None:
    sample(rig)
    await rig.add(*[b"x"] * 30)
    sample(rig, 3 * SAMPLE_EVERY_MS)

    assert history(rig).series["added_per_s"] == [0, 1, 1, 1]


@on_service()
async def test_histories_begin_anew_after_the_machine_slept(rig: ServiceRig) -> None:
    sample(rig)
    await rig.add(b"x")
    sample(rig, 2 * HOUR_MS)

    assert history(rig).series["ready"] == [1]


@on_service()
async def test_day_has_a_point_for_every_five_minutes(rig: ServiceRig) -> None:
    for _ in range(60):
        await rig.add(b"x")
        sample(rig)

    found = history(rig, span=HistorySpan.DAY)

    assert (found.end_ms, found.step_ms) == (rig.clock.now_ms(), 300_000)
    assert found.series["ready"] == [15.5, 45.5]
    assert found.series["oldest_age_ms"] == [300_000, 600_000]


@on_service()
async def test_so_many_queues_have_histories_and_no_more(rig: ServiceRig) -> None:
    for number in range(TRACKED_MAX + 10):
        await new_queue(rig, f"q{number}")
    busy = await new_queue(rig, "busy")
    await rig.add(*[b"x"] * 100, queue=busy)
    sample(rig)
    names = [*(f"q{number}" for number in range(TRACKED_MAX + 10)), "busy", "default"]

    tracked = [name for name in names if history(rig, name).series]

    assert len(tracked) == TRACKED_MAX
    assert "busy" in tracked


def test_the_others_cannot_be_taken_for_a_queue_or_topic() -> None:
    """Two samples with the same labels would be one that nobody understands."""
    with pytest.raises(InvalidArgument):
        check_queue_name(OTHER)
    with pytest.raises(InvalidArgument):
        check_new_topic_name(OTHER)
