"""Calls that are refused: by the call itself, and without a change."""

from collections.abc import Callable

import pytest

from queueber.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.limits import ADD_ITEMS_MAX, DELAY_MS_MAX, KIB, LEASE_MS_MAX, MANY_MAX
from queueber.model import NOTHING_POLLED, NewItems, Producer, QueueSettings
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, limits, on_service, run_on_service

ID = bytes(16)

Call = Callable[[ServiceRig], object]

REFUSED: dict[str, tuple[type[QueueberError], str, Call]] = {
    "add nothing as a producer": (
        InvalidArgument,
        "^items: ",
        lambda rig: rig.service.items.add(rig.queue, NewItems([], producer=Producer("p", 0, 1))),
    ),
    "add nothing with delays": (
        InvalidArgument,
        "^delaysMs: 1 for 0",
        lambda rig: rig.service.items.add(rig.queue, NewItems([], [1])),
    ),
    "add too many": (
        ResourceExhausted,
        "^items: ",
        lambda rig: rig.service.items.add(rig.queue, NewItems([b""] * (ADD_ITEMS_MAX + 1))),
    ),
    "add an item too large": (
        ResourceExhausted,
        "^contents: .* 1025 bytes; the limit is 1024",
        lambda rig: rig.service.items.add(rig.queue, NewItems([b"a", b"x" * 1025])),
    ),
    "add more than a message": (
        ResourceExhausted,
        "^contents: the call has ",
        lambda rig: rig.service.items.add(rig.queue, NewItems([b"x" * 1024] * 1024)),
    ),
    "add with delays for some": (
        InvalidArgument,
        "^delaysMs: ",
        lambda rig: rig.service.items.add(rig.queue, NewItems([b"a", b"b"], [1])),
    ),
    "add with a delay too long": (
        InvalidArgument,
        "^visibilityTimeout: ",
        lambda rig: rig.service.items.add(rig.queue, NewItems([b"a"], [DELAY_MS_MAX + 1])),
    ),
    "remove nothing": (
        InvalidArgument,
        "^ids: ",
        lambda rig: rig.service.items.remove(rig.queue, [], [ID]),
    ),
    "remove too many": (
        ResourceExhausted,
        "^ids: ",
        lambda rig: rig.service.items.remove(rig.queue, [ID] * (MANY_MAX + 1), [ID]),
    ),
    "remove with a lease of another width": (
        InvalidArgument,
        "^leases: one has 0 bytes",
        lambda rig: rig.service.items.remove(rig.queue, [ID], [b""]),
    ),
    "remove with leases for some": (
        InvalidArgument,
        "^leases: 2 for 3",
        lambda rig: rig.service.items.remove(rig.queue, [ID] * 3, [ID] * 2),
    ),
    "remove with no lease": (
        InvalidArgument,
        "^leases: 0 for 1",
        lambda rig: rig.service.items.remove(rig.queue, [ID], []),
    ),
    "extend nothing": (
        InvalidArgument,
        "^leases: ",
        lambda rig: rig.service.items.extend(rig.queue, [], [1]),
    ),
    "extend too many": (
        ResourceExhausted,
        "^leases: ",
        lambda rig: rig.service.items.extend(rig.queue, [ID] * (MANY_MAX + 1), [1]),
    ),
    "extend a lease of another width": (
        InvalidArgument,
        "^leases: one has 17 bytes",
        lambda rig: rig.service.items.extend(rig.queue, [bytes(17)], [1]),
    ),
    "extend with durations for some": (
        InvalidArgument,
        "^leaseValiditiesMs: 2 for 3",
        lambda rig: rig.service.items.extend(rig.queue, [ID] * 3, [1, 2]),
    ),
    "extend by nothing": (
        InvalidArgument,
        "^leaseValidity: 0",
        lambda rig: rig.service.items.extend(rig.queue, [ID] * 2, [1, 0]),
    ),
    "extend by too long": (
        InvalidArgument,
        "^leaseValidity: ",
        lambda rig: rig.service.items.extend(rig.queue, [ID], [LEASE_MS_MAX + 1]),
    ),
    "poll with a lease too long": (
        InvalidArgument,
        "^leaseValidity: ",
        lambda rig: rig.service.polls.poll(rig.queue, 1, lease_ms=LEASE_MS_MAX + 1, wait_ms=0),
    ),
    "poll_many of nothing": (
        InvalidArgument,
        "^counts: ",
        lambda rig: rig.service.polls.poll_many(rig.queue, [], lease_ms=1),
    ),
    "poll_many of too many polls": (
        ResourceExhausted,
        "^counts: ",
        lambda rig: rig.service.polls.poll_many(rig.queue, [1] * (MANY_MAX + 1), lease_ms=1),
    ),
    "poll_many of too many together": (
        InvalidArgument,
        "^numItems: 101 ",
        lambda rig: rig.service.polls.poll_many(rig.queue, [50, 51], lease_ms=1),
    ),
    "poll_many of zeros, which count as ones": (
        InvalidArgument,
        "^numItems: 101 ",
        lambda rig: rig.service.polls.poll_many(rig.queue, [0] * 101, lease_ms=1),
    ),
    "queue with a bad name": (
        InvalidArgument,
        "^name: ",
        lambda rig: rig.service.queues.open_queue("a b", rig.session, must_exist=False),
    ),
    "queue that must exist and does not": (
        NotFound,
        "'missing'",
        lambda rig: rig.service.queues.open_queue("missing", rig.session, must_exist=True),
    ),
    "create_queue with a bad name": (
        InvalidArgument,
        "^name: ",
        lambda rig: rig.service.queues.create_queue("", QueueSettings(), rig.session),
    ),
    "create_queue with items larger than the server takes": (
        InvalidArgument,
        "^itemBytesMax: 1025 ",
        lambda rig: rig.service.queues.create_queue(
            "new", QueueSettings(item_bytes_max=1025), rig.session
        ),
    ),
    "create_queue with other settings": (
        AlreadyExists,
        "'default'",
        lambda rig: rig.service.queues.create_queue(
            "default", QueueSettings(items_max=1), rig.session
        ),
    ),
    "configure_queue with items larger than the server takes": (
        InvalidArgument,
        "^itemBytesMax: 1025 ",
        lambda rig: rig.service.queues.configure_queue(
            "default", QueueSettings(item_bytes_max=1025), rig.session
        ),
    ),
    "configure_queue that does not exist": (
        NotFound,
        "'missing'",
        lambda rig: rig.service.queues.configure_queue("missing", QueueSettings(), rig.session),
    ),
    "delete_queue of the default queue": (
        InvalidArgument,
        "^name: .*'default'",
        lambda rig: rig.service.queues.delete_queue("default", rig.session),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_call_that_is_refused_is_refused_at_once_and_changes_nothing(name: str) -> None:
    error, message, call = REFUSED[name]

    async def body(rig: ServiceRig) -> None:
        await rig.add(b"ready", b"delayed", delay_ms=5)
        before, stats = dump(rig.store), rig.service.queues.stats(rig.queue)

        with pytest.raises(error, match=message):
            call(rig)

        assert dump(rig.store) == before
        assert rig.service.queues.stats(rig.queue) == stats

    run_on_service(body, limits(item_bytes_max=KIB))


DELETED: dict[str, Call] = {
    "add": lambda rig: rig.service.items.add(rig.queue, NewItems([b"a"])),
    "remove": lambda rig: rig.service.items.remove(rig.queue, [ID], [ID]),
    "extend": lambda rig: rig.service.items.extend(rig.queue, [ID], [1]),
    "poll": lambda rig: rig.service.polls.poll(rig.queue, 1, lease_ms=1, wait_ms=0),
    "poll_many": lambda rig: rig.service.polls.poll_many(rig.queue, [1], lease_ms=1),
    "stats": lambda rig: rig.service.queues.stats(rig.queue),
}


@pytest.mark.parametrize("verb", DELETED)
def test_verb_on_a_queue_that_was_deleted_is_not_found_and_changes_nothing(verb: str) -> None:
    async def body(rig: ServiceRig) -> None:
        rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
        await rig.add(b"a")
        await rig.service.queues.delete_queue("doomed", rig.session)
        before = dump(rig.store)

        with pytest.raises(NotFound, match="queue 'doomed' was deleted"):
            DELETED[verb](rig)

        assert dump(rig.store) == before

    run_on_service(body)


@pytest.mark.parametrize("verb", ["add", "poll"])
def test_verb_on_a_queue_made_anew_needs_to_ask_for_it_anew(verb: str) -> None:
    """Who holds the old one must not write into the new one unawares."""

    async def body(rig: ServiceRig) -> None:
        rig.queue = await rig.service.queues.open_queue("again", rig.session, must_exist=False)
        await rig.service.queues.delete_queue("again", rig.session)
        await rig.service.queues.open_queue("again", rig.session, must_exist=False)

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
