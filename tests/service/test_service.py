"""The verbs: checked by the call itself, refused without a change, answered in full."""

from queueber.limits import (
    ANSWER_BYTES,
    ITEM_WIRE_BYTES,
    KIB,
    MESSAGE_OVERHEAD_BYTES,
    MIB,
    QUEUES_MAX,
)
from queueber.model import NOTHING_POLLED, ItemState, NewItems, QueueSettings
from queueber.service.session import QueueHandle
from tests.support.dumps import dump
from tests.support.operations import delete_queue
from tests.support.service_rig import ServiceRig, limits, on_service

ID = bytes(16)

# --- what is answered -----------------------------------------------------------------------------


@on_service()
async def test_remove_with_one_lease_for_all_is_remove_with_it_for_each(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    polled = await rig.poll_now(3)

    removed = await rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id])

    assert removed == [True, True, True]


@on_service()
async def test_remove_with_a_lease_for_each_answers_for_each(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b")
    one, two = await rig.service.polls.poll_many(rig.queue, [1, 1], lease_ms=1000)
    ids = [*one.ids, *two.ids]

    assert await rig.service.items.remove(rig.queue, ids, [one.lease_id, one.lease_id]) == [
        True,
        False,
    ]


@on_service()
async def test_remove_of_whole_leases_answers_for_each(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    one, two = await rig.service.polls.poll_many(rig.queue, [2, 1], lease_ms=1000)
    leases = [one.lease_id, two.lease_id, ID]

    assert await rig.service.items.remove_whole(rig.queue, leases, [2, 2, 1]) == [
        True,
        False,
        False,
    ]

    assert await rig.service.items.remove(rig.queue, two.ids, [two.lease_id]) == [True]


@on_service()
async def test_extend_with_one_duration_for_all_is_extend_with_it_for_each(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", b"b")
    answers = await rig.service.polls.poll_many(rig.queue, [1, 1], lease_ms=1000)
    leases = [answer.lease_id for answer in answers]

    assert await rig.service.items.extend(rig.queue, [*leases, ID], [5000]) == [True, True, False]
    rig.clock.advance(4999)
    assert (await rig.poll_now(2)) == NOTHING_POLLED
    rig.clock.advance(1)
    assert len((await rig.poll_now(2)).ids) == 2


@on_service()
async def test_poll_of_zero_items_is_poll_of_one(rig: ServiceRig) -> None:
    ids = await rig.add(b"a", b"b", b"c")

    assert (await rig.poll_now(0)).ids == ids[:1]
    answers = await rig.service.polls.poll_many(rig.queue, [0, 0], lease_ms=1000)
    assert [list(answer.ids) for answer in answers] == [ids[1:2], ids[2:]]


@on_service()
async def test_poll_with_a_lease_of_zero_has_the_lease_of_its_queue(rig: ServiceRig) -> None:
    rig.queue = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    await rig.service.queues.configure_queue(
        "other", QueueSettings(lease_ms=700, backoff_ms=(0,)), rig.session
    )
    await rig.add(b"a", b"b")
    first = await rig.poll_now(lease_ms=0)
    (second,) = await rig.service.polls.poll_many(rig.queue, [1], lease_ms=0)

    rig.clock.advance(699)
    assert await rig.poll_now() == NOTHING_POLLED
    rig.clock.advance(1)

    assert (await rig.poll_now(2)).ids == [*first.ids, *second.ids]


@on_service()
async def test_poll_many_with_nothing_ready_does_not_wait(rig: ServiceRig) -> None:
    before_ms = rig.clock.now_ms()

    answers = await rig.service.polls.poll_many(rig.queue, [1, 2], lease_ms=1000)

    assert answers == [NOTHING_POLLED] * 2
    assert rig.clock.now_ms() == before_ms


MESSAGE_BYTES_MAX = 64 * KIB


@on_service(limits(item_bytes_max=50 * KIB, message_bytes_max=MESSAGE_BYTES_MAX))
async def test_poll_keeps_its_answer_within_a_message(rig: ServiceRig) -> None:
    room = MESSAGE_BYTES_MAX - MESSAGE_OVERHEAD_BYTES
    size = room // 4 - ITEM_WIRE_BYTES
    for _ in range(2):
        await rig.add(*[b"x" * size] * 3)

    first = await rig.poll_now(100)
    answers = await rig.service.polls.poll_many(rig.queue, [1] * 6, lease_ms=1000)

    assert len(first.ids) == 4
    assert [len(answer.ids) for answer in answers] == [1, 1, 0, 0, 0, 0]


@on_service(limits(item_bytes_max=MIB, message_bytes_max=8 * MIB))
async def test_an_answer_that_is_long_takes_no_further_item(rig: ServiceRig) -> None:
    """Everybody else waits while it is made, so who wants more asks again."""
    for _ in range(5):
        await rig.add(bytes(MIB * 3 // 4))

    peeked, after = rig.service.items.peek(rig.queue, ItemState.READY, b"", 100)
    peeked_next, _ = rig.service.items.peek(rig.queue, ItemState.READY, after, 100)
    answers = await rig.service.polls.poll_many(rig.queue, [1] * 5, lease_ms=1000)
    rest = await rig.poll_now(100)

    assert (len(peeked), len(peeked_next)) == (3, 2)
    assert [len(answer.ids) for answer in answers] == [1, 1, 1, 0, 0]
    assert len(rest.ids) == 2
    assert ANSWER_BYTES < len(peeked) * MIB * 3 // 4 < ANSWER_BYTES + MIB


# --- queues ---------------------------------------------------------------------------------------


@on_service()
async def test_default_queue_is_always_there(rig: ServiceRig) -> None:
    assert rig.queue.name == "default"
    opened = await rig.service.queues.open_queue("default", rig.session, must_exist=True)
    assert opened == rig.queue


@on_service()
async def test_queue_that_is_missing_is_created_once(rig: ServiceRig) -> None:
    first = await rig.service.queues.open_queue("new", rig.session, must_exist=False)
    second = await rig.service.queues.open_queue("new", rig.session, must_exist=False)

    assert first == second
    assert await rig.service.queues.open_queue("new", rig.session, must_exist=True) == first


@on_service()
async def test_queue_that_has_settings_is_handed_out_as_it_is(rig: ServiceRig) -> None:
    settings = QueueSettings(items_max=3)
    await rig.service.queues.create_queue("new", settings, rig.session)

    opened = await rig.service.queues.open_queue("new", rig.session, must_exist=False)
    assert opened.state.settings == settings


@on_service()
async def test_create_configure_and_delete_queue_answer_what_they_did(rig: ServiceRig) -> None:
    settings = QueueSettings(item_bytes_max=10)

    assert await rig.service.queues.create_queue("new", settings, rig.session)
    assert not await rig.service.queues.create_queue("new", settings, rig.session)
    await rig.service.queues.configure_queue("new", QueueSettings(items_max=1), rig.session)
    assert rig.engine.queues.get("new").settings == QueueSettings(items_max=1)
    assert await rig.service.queues.delete_queue("new", rig.session)
    assert not await rig.service.queues.delete_queue("new", rig.session)


@on_service()
async def test_list_queues_goes_by_name_in_pages(rig: ServiceRig) -> None:
    for name in ("delta", "alpha", "charlie"):
        await rig.service.queues.open_queue(name, rig.session, must_exist=False)
    everything = ["alpha", "charlie", "default", "delta"]

    def listed(after: str, limit: int) -> tuple[list[str], bool]:
        stats, more = rig.service.queues.list_queues(after, limit, rig.session)
        return [each.name for each in stats], more

    assert listed("", 0) == (everything, False)
    assert listed("", 4) == (everything, False)
    assert listed("", 3) == (everything[:3], True)
    assert listed("charlie", 1) == (["default"], True)
    assert listed("b", 10) == (everything[1:], False)
    assert listed("zulu", 10) == ([], False)
    assert listed("", 10 * QUEUES_MAX) == (everything, False)


@on_service()
async def test_stats_count_the_polls_that_wait(rig: ServiceRig) -> None:
    tasks = [await rig.waiting_poll(wait_ms=100) for _ in range(3)]

    (stats,), _ = rig.service.queues.list_queues("", 1, rig.session)
    assert stats.waiting_polls == 3

    await rig.service.drain()
    assert all(task.done() for task in tasks)


@on_service()
async def test_service_on_a_store_without_its_default_queue_creates_it(rig: ServiceRig) -> None:
    delete_queue(rig.engine, "default")

    again = ServiceRig(rig.store, rig.clock, rig.loop, limits(), None)

    assert again.queue.name == "default"
    assert again.queue.state.queue_id > rig.queue.state.queue_id


# --- nothing to do, or too much -------------------------------------------------------------------


@on_service()
async def test_add_of_nothing_answers_with_no_ids_and_writes_nothing(rig: ServiceRig) -> None:
    before = dump(rig.store)

    assert list((await rig.service.items.add(rig.queue, NewItems([]))).ids) == []

    assert dump(rig.store) == before


@on_service(limits(poll_items_max=3))
async def test_poll_of_more_than_the_limit_answers_up_to_the_limit(rig: ServiceRig) -> None:
    ids = await rig.add(*[b"x"] * 10)

    polled = await rig.poll_now(1000)
    (one,) = await rig.service.polls.poll_many(rig.queue, [1000], lease_ms=1000)
    waiting = await rig.waiting_poll(1000, queue=await other_queue(rig))
    await rig.add(*[b"y"] * 5, queue=await other_queue(rig))

    assert (list(polled.ids), list(one.ids)) == (ids[:3], ids[3:6])
    assert len((await waiting).ids) == 3


async def other_queue(rig: ServiceRig) -> QueueHandle:
    return await rig.service.queues.open_queue("other", rig.session, must_exist=False)
