"""Calls of the newer verbs that are refused: by the call itself, and without a change."""

from collections.abc import Callable

import pytest

from queueber.errors import (
    Aborted,
    InvalidArgument,
    NotFound,
    QueueberError,
    ResourceExhausted,
)
from queueber.limits import DELAY_MS_MAX, ERROR_BYTES_MAX, KIB, LEASE_MS_MAX, MANY_MAX
from queueber.model import ItemState, NewItems, Producer
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, limits, run_on_service

ID = bytes(16)

# Verbs that take ids and leases check them alike, whatever else they take.
OUTCOMES: dict[str, Callable[[ServiceRig, list[bytes], list[bytes]], object]] = {
    "remove": lambda rig, ids, leases: rig.service.items.remove(rig.queue, ids, leases),
    "complete": lambda rig, ids, leases: rig.service.items.complete(
        rig.queue, ids, leases, [b"r"] * len(ids)
    ),
    "fail": lambda rig, ids, leases: rig.service.items.fail(rig.queue, ids, leases, ["why"], []),
    "release": lambda rig, ids, leases: rig.service.items.release(rig.queue, ids, leases),
}

WRONG: dict[str, tuple[type[QueueberError], str, list[bytes], list[bytes]]] = {
    "no ids": (InvalidArgument, "^ids: the call has none", [], [ID]),
    "too many ids": (ResourceExhausted, "^ids: the call has 10001", [ID] * (MANY_MAX + 1), [ID]),
    "an id of another width": (InvalidArgument, "^ids: one has 3 bytes", [ID, b"abc"], [ID]),
    "a lease of another width": (InvalidArgument, "^leases: one has 0 bytes", [ID], [b""]),
    "leases for some": (InvalidArgument, "^leases: 2 for 3", [ID] * 3, [ID] * 2),
    "no lease": (InvalidArgument, "^leases: 0 for 1", [ID], []),
}


async def filled(rig: ServiceRig) -> None:
    """An item of every state, and a result."""
    await rig.add(*[b"x"] * 3, batch="known")
    await rig.complete(await rig.poll_now())
    await rig.poll_now()
    await rig.add(b"delayed", delay_ms=5)
    producer = Producer("spark", epoch=2, sequence=1)
    await rig.service.items.add(rig.queue, NewItems([b"x"], keys=["k"], producer=producer))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("verb", OUTCOMES)
def test_outcome_with_wrong_ids_or_leases_is_refused_at_once_and_changes_nothing(
    verb: str, wrong: str
) -> None:
    error, message, ids, leases = WRONG[wrong]
    if (verb, wrong) == ("remove", "an id of another width"):
        pytest.skip("it is answered with false: see test_outcomes.py")

    async def body(rig: ServiceRig) -> None:
        await filled(rig)
        before, stats = dump(rig.store), rig.service.queues.stats(rig.queue)

        with pytest.raises(error, match=message):
            OUTCOMES[verb](rig, ids, leases)

        assert dump(rig.store) == before
        assert rig.service.queues.stats(rig.queue) == stats

    run_on_service(body)


REFUSED: dict[str, tuple[type[QueueberError], str, Callable[[ServiceRig], object]]] = {
    "add of a producer whose epoch is over": (
        Aborted,
        "^producer: 'spark' is in epoch 2",
        lambda rig: rig.service.items.add(
            rig.queue, NewItems([b"x"], producer=Producer("spark", 1, 1))
        ),
    ),
    "add of a producer that leaves a gap": (
        Aborted,
        "^producer: sequence 3 of 'spark' leaves a gap; 2 comes next in epoch 2",
        lambda rig: rig.service.items.add(
            rig.queue, NewItems([b"x"], producer=Producer("spark", 2, 3))
        ),
    ),
    "poll with a lease too long": (
        InvalidArgument,
        "^leaseValidity: ",
        lambda rig: rig.service.polls.poll_many(rig.queue, [1], lease_ms=LEASE_MS_MAX + 1),
    ),
    "complete with results for some": (
        InvalidArgument,
        "^results: 1 for 2 ids",
        lambda rig: rig.service.items.complete(rig.queue, [ID] * 2, [ID], [b"r"]),
    ),
    "complete with a result too large": (
        ResourceExhausted,
        "^results: one has 1025 bytes; the limit is 1024",
        lambda rig: rig.service.items.complete(rig.queue, [ID], [ID], [b"r" * 1025]),
    ),
    "fail with errors for some": (
        InvalidArgument,
        "^errors: 2 for 3",
        lambda rig: rig.service.items.fail(rig.queue, [ID] * 3, [ID], ["", ""], []),
    ),
    "fail with an error too long": (
        InvalidArgument,
        "^errors: one has ",
        lambda rig: rig.service.items.fail(
            rig.queue, [ID], [ID], ["e" * (ERROR_BYTES_MAX + 1)], []
        ),
    ),
    "fail with delays for some": (
        InvalidArgument,
        "^delaysMs: 2 for 3",
        lambda rig: rig.service.items.fail(rig.queue, [ID] * 3, [ID], ["why"], [1, 2]),
    ),
    "fail with a delay too long": (
        InvalidArgument,
        "^delaysMs: ",
        lambda rig: rig.service.items.fail(rig.queue, [ID], [ID], ["why"], [DELAY_MS_MAX + 1]),
    ),
    "cancel nothing": (
        InvalidArgument,
        "^ids: the call has none",
        lambda rig: rig.service.items.cancel(rig.queue, []),
    ),
    "cancel too many": (
        ResourceExhausted,
        "^ids: the call has ",
        lambda rig: rig.service.items.cancel(rig.queue, [ID] * (MANY_MAX + 1)),
    ),
    "cancel an id of another width": (
        InvalidArgument,
        "^ids: one has 3 bytes",
        lambda rig: rig.service.items.cancel(rig.queue, [b"abc"]),
    ),
    "reschedule nothing": (
        InvalidArgument,
        "^ids: the call has none",
        lambda rig: rig.service.items.reschedule(rig.queue, [], 0),
    ),
    "reschedule too many": (
        ResourceExhausted,
        "^ids: the call has ",
        lambda rig: rig.service.items.reschedule(rig.queue, [ID] * (MANY_MAX + 1), 0),
    ),
    "reschedule an id of another width": (
        InvalidArgument,
        "^ids: one has 3 bytes",
        lambda rig: rig.service.items.reschedule(rig.queue, [b"abc"], 0),
    ),
    "reschedule too far away": (
        InvalidArgument,
        "^delayMs: ",
        lambda rig: rig.service.items.reschedule(rig.queue, [ID], DELAY_MS_MAX + 1),
    ),
    "redrive too many": (
        ResourceExhausted,
        "^ids: the call has ",
        lambda rig: rig.service.items.redrive(rig.queue, [ID] * (MANY_MAX + 1), 0),
    ),
    "redrive an id of another width": (
        InvalidArgument,
        "^ids: one has 3 bytes",
        lambda rig: rig.service.items.redrive(rig.queue, [b"abc"], 0),
    ),
    "pause for too long": (
        InvalidArgument,
        "^forMs: ",
        lambda rig: rig.service.queues.pause(rig.queue, DELAY_MS_MAX + 1),
    ),
    "peek after what is no cursor": (
        InvalidArgument,
        "^after: ",
        lambda rig: rig.service.items.peek(rig.queue, ItemState.READY, bytes(65), 1),
    ),
    "receipt of no batch": (
        InvalidArgument,
        "^batch: it is empty",
        lambda rig: rig.service.results.receipt(rig.queue, ""),
    ),
    "wait_batch of no batch": (
        InvalidArgument,
        "^batch: it is empty",
        lambda rig: rig.service.results.wait_for_batch(rig.queue, "", 1000),
    ),
    "read_results past the end": (
        InvalidArgument,
        "^offset is 2; the limit is 1",
        lambda rig: rig.service.results.read_results(
            rig.queue, reader="", offset=2, limit=0, wait_ms=1000
        ),
    ),
    "read_results of a reader too long": (
        InvalidArgument,
        "^reader: .* has 257 bytes; the limit is 256",
        lambda rig: rig.service.results.read_results(
            rig.queue, reader="r" * 257, offset=0, limit=0, wait_ms=0
        ),
    ),
    "ack_results of nobody": (
        InvalidArgument,
        "^reader: it is empty",
        lambda rig: rig.service.results.ack_results(rig.queue, "", 0),
    ),
    "ack_results past the end": (
        InvalidArgument,
        "^offset is 2; the limit is 1",
        lambda rig: rig.service.results.ack_results(rig.queue, "reader", 2),
    ),
    "drop_reader of nobody": (
        InvalidArgument,
        "^reader: it is empty",
        lambda rig: rig.service.results.drop_reader(rig.queue, ""),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_call_that_is_refused_is_refused_at_once_and_changes_nothing(name: str) -> None:
    error, message, call = REFUSED[name]

    async def body(rig: ServiceRig) -> None:
        await filled(rig)
        before, stats = dump(rig.store), rig.service.queues.stats(rig.queue)
        log = rig.service.results.results_stats(rig.queue)

        with pytest.raises(error, match=message):
            call(rig)

        assert dump(rig.store) == before
        assert rig.service.queues.stats(rig.queue) == stats
        assert rig.service.results.results_stats(rig.queue) == log

    run_on_service(body, limits(item_bytes_max=KIB))


DELETED: dict[str, Callable[[ServiceRig], object]] = {
    "complete": lambda rig: OUTCOMES["complete"](rig, [ID], [ID]),
    "fail": lambda rig: OUTCOMES["fail"](rig, [ID], [ID]),
    "release": lambda rig: OUTCOMES["release"](rig, [ID], [ID]),
    "cancel": lambda rig: rig.service.items.cancel(rig.queue, [ID]),
    "reschedule": lambda rig: rig.service.items.reschedule(rig.queue, [ID], 0),
    "purge": lambda rig: rig.service.items.purge(rig.queue, ItemState.READY, 0),
    "redrive": lambda rig: rig.service.items.redrive(rig.queue, [], 0),
    "peek": lambda rig: rig.service.items.peek(rig.queue, ItemState.READY, b"", 0),
    "pause": lambda rig: rig.service.queues.pause(rig.queue, 0),
    "resume": lambda rig: rig.service.queues.resume(rig.queue),
    "receipt": lambda rig: rig.service.results.receipt(rig.queue, "known"),
    "wait_batch": lambda rig: rig.service.results.wait_for_batch(rig.queue, "known", 1000),
    "read_results": lambda rig: rig.service.results.read_results(
        rig.queue, reader="", offset=0, limit=0, wait_ms=1000
    ),
    "ack_results": lambda rig: rig.service.results.ack_results(rig.queue, "reader", 0),
    "drop_reader": lambda rig: rig.service.results.drop_reader(rig.queue, "reader"),
    "log_stats": lambda rig: rig.service.results.results_stats(rig.queue),
}


@pytest.mark.parametrize("verb", DELETED)
def test_verb_on_a_queue_that_was_deleted_is_not_found_and_changes_nothing(verb: str) -> None:
    async def body(rig: ServiceRig) -> None:
        rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
        await filled(rig)
        await rig.service.queues.delete_queue("doomed", rig.session)
        before = dump(rig.store)

        with pytest.raises(NotFound, match="queue 'doomed' was deleted"):
            DELETED[verb](rig)

        assert dump(rig.store) == before

    run_on_service(body)
