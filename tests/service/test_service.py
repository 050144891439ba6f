"""The verbs: checked by the call itself, refused without a change, answered in full."""

from collections.abc import Callable

import pytest

from queueber.engine.queues import delete_queue
from queueber.errors import (
    Aborted,
    InvalidArgument,
    NotFound,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.limits import (
    ADD_ITEMS_MAX,
    DELAY_MS_MAX,
    ITEM_WIRE_BYTES,
    KIB,
    LEASE_MS_MAX,
    MANY_MAX,
    MESSAGE_OVERHEAD_BYTES,
    QUEUES_MAX,
)
from queueber.model import NOTHING_POLLED, QueueSettings
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, limits, on_service, run_on_service

ID = bytes(16)

# --- what is refused ------------------------------------------------------------------------------

Call = Callable[[ServiceRig], object]

REFUSED: dict[str, tuple[type[QueueberError], str, Call]] = {
    "add nothing": (
        InvalidArgument, "^items: ", lambda rig: rig.service.add(rig.queue, [], []),
    ),
    "add too many": (
        ResourceExhausted, "^items: ",
        lambda rig: rig.service.add(rig.queue, [b""] * (ADD_ITEMS_MAX + 1), []),
    ),
    "add an item too large": (
        ResourceExhausted, "^contents: .* 1025 bytes; the limit is 1024",
        lambda rig: rig.service.add(rig.queue, [b"a", b"x" * 1025], []),
    ),
    "add more than a message": (
        ResourceExhausted, "^contents: the call has ",
        lambda rig: rig.service.add(rig.queue, [b"x" * 1024] * 1024, []),
    ),
    "add with delays for some": (
        InvalidArgument, "^delaysMs: ", lambda rig: rig.service.add(rig.queue, [b"a", b"b"], [1]),
    ),
    "add with a delay too long": (
        InvalidArgument, "^visibilityTimeout: ",
        lambda rig: rig.service.add(rig.queue, [b"a"], [DELAY_MS_MAX + 1]),
    ),
    "remove nothing": (
        InvalidArgument, "^ids: ", lambda rig: rig.service.remove(rig.queue, [], [ID]),
    ),
    "remove too many": (
        ResourceExhausted, "^ids: ",
        lambda rig: rig.service.remove(rig.queue, [ID] * (MANY_MAX + 1), [ID]),
    ),
    "remove an id of another width": (
        InvalidArgument, "^ids: one has 3 bytes",
        lambda rig: rig.service.remove(rig.queue, [ID, b"abc"], [ID]),
    ),
    "remove with a lease of another width": (
        InvalidArgument, "^leases: one has 0 bytes",
        lambda rig: rig.service.remove(rig.queue, [ID], [b""]),
    ),
    "remove with leases for some": (
        InvalidArgument, "^leases: 2 for 3",
        lambda rig: rig.service.remove(rig.queue, [ID] * 3, [ID] * 2),
    ),
    "remove with no lease": (
        InvalidArgument, "^leases: 0 for 1", lambda rig: rig.service.remove(rig.queue, [ID], []),
    ),
    "extend nothing": (
        InvalidArgument, "^leases: ", lambda rig: rig.service.extend(rig.queue, [], [1]),
    ),
    "extend too many": (
        ResourceExhausted, "^leases: ",
        lambda rig: rig.service.extend(rig.queue, [ID] * (MANY_MAX + 1), [1]),
    ),
    "extend a lease of another width": (
        InvalidArgument, "^leases: one has 17 bytes",
        lambda rig: rig.service.extend(rig.queue, [bytes(17)], [1]),
    ),
    "extend with durations for some": (
        InvalidArgument, "^leaseValiditiesMs: 2 for 3",
        lambda rig: rig.service.extend(rig.queue, [ID] * 3, [1, 2]),
    ),
    "extend by nothing": (
        InvalidArgument, "^leaseValidity: 0",
        lambda rig: rig.service.extend(rig.queue, [ID] * 2, [1, 0]),
    ),
    "extend by too long": (
        InvalidArgument, "^leaseValidity: ",
        lambda rig: rig.service.extend(rig.queue, [ID], [LEASE_MS_MAX + 1]),
    ),
    "poll too many": (
        InvalidArgument, "^numItems: 101 ",
        lambda rig: rig.service.poll(rig.queue, 101, lease_ms=1, wait_ms=0),
    ),
    "poll without a lease": (
        InvalidArgument, "^leaseValidity: 0",
        lambda rig: rig.service.poll(rig.queue, 1, lease_ms=0, wait_ms=0),
    ),
    "poll with a lease too long": (
        InvalidArgument, "^leaseValidity: ",
        lambda rig: rig.service.poll(rig.queue, 1, lease_ms=LEASE_MS_MAX + 1, wait_ms=0),
    ),
    "poll_many of nothing": (
        InvalidArgument, "^counts: ", lambda rig: rig.service.poll_many(rig.queue, [], lease_ms=1),
    ),
    "poll_many of too many polls": (
        ResourceExhausted, "^counts: ",
        lambda rig: rig.service.poll_many(rig.queue, [1] * (MANY_MAX + 1), lease_ms=1),
    ),
    "poll_many of too many together": (
        InvalidArgument, "^numItems: 101 ",
        lambda rig: rig.service.poll_many(rig.queue, [50, 51], lease_ms=1),
    ),
    "poll_many of zeros, which count as ones": (
        InvalidArgument, "^numItems: 101 ",
        lambda rig: rig.service.poll_many(rig.queue, [0] * 101, lease_ms=1),
    ),
    "poll_many without a lease": (
        InvalidArgument, "^leaseValidity: 0",
        lambda rig: rig.service.poll_many(rig.queue, [1], lease_ms=0),
    ),
    "queue with a bad name": (
        InvalidArgument, "^name: ", lambda rig: rig.service.queue("a b", must_exist=False),
    ),
    "queue that must exist and does not": (
        NotFound, "'missing'", lambda rig: rig.service.queue("missing", must_exist=True),
    ),
    "create_queue with a bad name": (
        InvalidArgument, "^name: ", lambda rig: rig.service.create_queue("", QueueSettings()),
    ),
    "create_queue with items larger than the server takes": (
        InvalidArgument, "^itemBytesMax: 1025 ",
        lambda rig: rig.service.create_queue("new", QueueSettings(item_bytes_max=1025)),
    ),
    "create_queue with other settings": (
        Aborted, "'default'",
        lambda rig: rig.service.create_queue("default", QueueSettings(items_max=1)),
    ),
    "configure_queue with items larger than the server takes": (
        InvalidArgument, "^itemBytesMax: 1025 ",
        lambda rig: rig.service.configure_queue("default", QueueSettings(item_bytes_max=1025)),
    ),
    "configure_queue that does not exist": (
        NotFound, "'missing'", lambda rig: rig.service.configure_queue("missing", QueueSettings()),
    ),
    "delete_queue of the default queue": (
        InvalidArgument, "^name: .*'default'", lambda rig: rig.service.delete_queue("default"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_call_that_is_refused_is_refused_at_once_and_changes_nothing(name: str) -> None:
    error, message, call = REFUSED[name]

    async def body(rig: ServiceRig) -> None:
        await rig.add(b"ready", b"delayed", delay_ms=5)
        before, stats = dump(rig.store), rig.service.stats(rig.queue)

        with pytest.raises(error, match=message):
            call(rig)

        assert dump(rig.store) == before
        assert rig.service.stats(rig.queue) == stats

    run_on_service(body, limits(item_bytes_max=KIB))


DELETED: dict[str, Call] = {
    "add": lambda rig: rig.service.add(rig.queue, [b"a"], []),
    "remove": lambda rig: rig.service.remove(rig.queue, [ID], [ID]),
    "extend": lambda rig: rig.service.extend(rig.queue, [ID], [1]),
    "poll": lambda rig: rig.service.poll(rig.queue, 1, lease_ms=1, wait_ms=0),
    "poll_many": lambda rig: rig.service.poll_many(rig.queue, [1], lease_ms=1),
    "stats": lambda rig: rig.service.stats(rig.queue),
}


@pytest.mark.parametrize("verb", DELETED)
def test_verb_on_a_queue_that_was_deleted_is_not_found_and_changes_nothing(verb: str) -> None:
    async def body(rig: ServiceRig) -> None:
        rig.queue = await rig.service.queue("doomed", must_exist=False)
        await rig.add(b"a")
        await rig.service.delete_queue("doomed")
        before = dump(rig.store)

        with pytest.raises(NotFound, match="queue 'doomed' was deleted"):
            DELETED[verb](rig)

        assert dump(rig.store) == before

    run_on_service(body)


@pytest.mark.parametrize("verb", ["add", "poll"])
def test_verb_on_a_queue_made_anew_needs_to_ask_for_it_anew(verb: str) -> None:
    """Who holds the old one must not write into the new one unawares."""

    async def body(rig: ServiceRig) -> None:
        rig.queue = await rig.service.queue("again", must_exist=False)
        await rig.service.delete_queue("again")
        await rig.service.queue("again", must_exist=False)

        with pytest.raises(NotFound):
            DELETED[verb](rig)

    run_on_service(body)


@on_service()
async def test_add_that_the_store_refuses_changes_nothing_and_wakes_nobody(
    rig: ServiceRig,
) -> None:
    task = await rig.waiting_poll(wait_ms=100)
    before = dump(rig.store)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)

        with pytest.raises(Unavailable):
            await rig.add(b"a")

    assert dump(rig.store) == before
    assert await task == NOTHING_POLLED


# --- what is answered -----------------------------------------------------------------------------


@on_service()
async def test_remove_with_one_lease_for_all_is_remove_with_it_for_each(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    polled = await rig.poll_now(3)

    removed = await rig.service.remove(rig.queue, polled.ids, [polled.lease_id])

    assert removed == [True, True, True]


@on_service()
async def test_remove_with_a_lease_for_each_answers_for_each(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b")
    one, two = await rig.service.poll_many(rig.queue, [1, 1], lease_ms=1000)
    ids = [*one.ids, *two.ids]

    assert await rig.service.remove(rig.queue, ids, [one.lease_id, one.lease_id]) == [True, False]


@on_service()
async def test_extend_with_one_duration_for_all_is_extend_with_it_for_each(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", b"b")
    answers = await rig.service.poll_many(rig.queue, [1, 1], lease_ms=1000)
    leases = [answer.lease_id for answer in answers]

    assert await rig.service.extend(rig.queue, [*leases, ID], [5000]) == [True, True, False]
    rig.clock.advance(4999)
    assert (await rig.poll_now(2)) == NOTHING_POLLED
    rig.clock.advance(1)
    assert len((await rig.poll_now(2)).ids) == 2


@on_service()
async def test_poll_of_zero_items_is_poll_of_one(rig: ServiceRig) -> None:
    ids = await rig.add(b"a", b"b", b"c")

    assert (await rig.poll_now(0)).ids == ids[:1]
    answers = await rig.service.poll_many(rig.queue, [0, 0], lease_ms=1000)
    assert [list(answer.ids) for answer in answers] == [ids[1:2], ids[2:]]


@on_service()
async def test_poll_many_with_nothing_ready_does_not_wait(rig: ServiceRig) -> None:
    before_ms = rig.clock.now_ms()

    answers = await rig.service.poll_many(rig.queue, [1, 2], lease_ms=1000)

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
    answers = await rig.service.poll_many(rig.queue, [1] * 6, lease_ms=1000)

    assert len(first.ids) == 4
    assert [len(answer.ids) for answer in answers] == [1, 1, 0, 0, 0, 0]


# --- queues ---------------------------------------------------------------------------------------


@on_service()
async def test_default_queue_is_always_there(rig: ServiceRig) -> None:
    assert rig.service.default_queue.name == "default"
    assert await rig.service.queue("default", must_exist=True) is rig.service.default_queue


@on_service()
async def test_queue_that_is_missing_is_created_once(rig: ServiceRig) -> None:
    first = await rig.service.queue("new", must_exist=False)
    second = await rig.service.queue("new", must_exist=False)

    assert first is second
    assert await rig.service.queue("new", must_exist=True) is first


@on_service()
async def test_queue_that_has_settings_is_handed_out_as_it_is(rig: ServiceRig) -> None:
    settings = QueueSettings(items_max=3)
    await rig.service.create_queue("new", settings)

    assert (await rig.service.queue("new", must_exist=False)).settings == settings


@on_service()
async def test_create_configure_and_delete_queue_answer_what_they_did(rig: ServiceRig) -> None:
    settings = QueueSettings(item_bytes_max=10)

    assert await rig.service.create_queue("new", settings)
    assert not await rig.service.create_queue("new", settings)
    await rig.service.configure_queue("new", QueueSettings(items_max=1))
    assert rig.engine.queue("new").settings == QueueSettings(items_max=1)
    assert await rig.service.delete_queue("new")
    assert not await rig.service.delete_queue("new")


@on_service()
async def test_list_queues_goes_by_name_in_pages(rig: ServiceRig) -> None:
    for name in ("delta", "alpha", "charlie"):
        await rig.service.queue(name, must_exist=False)
    everything = ["alpha", "charlie", "default", "delta"]

    def listed(after: str, limit: int) -> tuple[list[str], bool]:
        stats, more = rig.service.list_queues(after, limit)
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

    (stats,), _ = rig.service.list_queues("", 1)
    assert stats.waiting_polls == 3

    await rig.service.drain()
    assert all(task.done() for task in tasks)


@on_service()
async def test_service_on_a_store_without_its_default_queue_creates_it(rig: ServiceRig) -> None:
    delete_queue(rig.engine, "default")

    again = ServiceRig(rig.store, rig.clock, rig.loop, limits(), None)

    assert again.queue.name == "default"
    assert again.queue.queue_id > rig.queue.queue_id
