"""Topics as callers see them: publishes that share a write, reads that wait, topics that end."""

import asyncio
from typing import Any

import pytest

from queueber.errors import FailedPrecondition, InvalidArgument, NotFound, OutOfRange
from queueber.limits import MINUTE_MS, SECOND_MS
from queueber.model import (
    Bounds,
    MessageSlice,
    NewMessages,
    Position,
    Producer,
    Publication,
    Published,
    Start,
    TopicConfig,
    TopicSettings,
)
from queueber.service.topic_handle import TopicHandle
from tests.support.service_rig import (
    HeldSync,
    ServiceRig,
    limits,
    new_session,
    on_service,
    run_on_service,
)
from tests.support.virtual_loop import turns

EARLIEST = Position()
LATEST = Position(Start.LATEST)


async def open_topic(rig: ServiceRig, name: str = "t") -> TopicHandle:
    return await rig.service.topics.open_topic(name, rig.session, must_exist=False)


async def publish(rig: ServiceRig, topic: TopicHandle, *payloads: bytes, **more: Any) -> Published:
    publication = Publication("", NewMessages(payloads), **more)
    (published,) = await rig.service.publishing.publish_to(topic, publication)
    return published


def read(
    rig: ServiceRig, topic: TopicHandle, position: Position = EARLIEST, **more: Any
) -> "asyncio.Task[MessageSlice]":
    bounds = more.pop("bounds", Bounds())
    return rig.begin(rig.service.reads.read(topic, 0, position, bounds, **more))


def payloads_of(found: MessageSlice) -> list[bytes]:
    payloads = []
    for piece in found.packed:
        ends = list(memoryview(piece.ends).cast("I"))
        payloads += [piece.payloads[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return payloads


# --- publishing -----------------------------------------------------------------------------------


def test_small_publishes_of_many_callers_are_one_block_and_each_has_its_answer() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        topic = await open_topic(rig)
        publishing = rig.service.publishing
        first = rig.begin(publish(rig, topic, b"first"))
        await sync.wait_begun(2)
        calls = []
        for number in range(3):
            messages = NewMessages([b"%d" % number, b"x"], keys=["", "k"] if number == 1 else ())
            to = [Publication("t", messages), Publication("other", NewMessages([b"o"]))]
            calls.append(rig.begin(publishing.publish(new_session(), to)))
        await turns()
        assert topic.state.next_offset(0) == 1
        sync.let_all()
        answers = [await call for call in calls]

        assert list((await first).offsets) == [0]
        assert [[list(own.offsets) for own in answer] for answer in answers] == [
            [[1, 2], [0]],
            [[3, 4], [1]],
            [[5, 6], [2]],
        ]
        assert len({each for answer in answers for own in answer for each in own.ids}) == 9
        found = await read(rig, topic)
        assert payloads_of(found) == [b"first", b"0", b"x", b"1", b"x", b"2", b"x"]
        assert [(piece.offset, piece.count) for piece in found.packed] == [(0, 1), (1, 6)]
        assert list(found.packed[1].keys) == [b"", b"", b"", b"k", b"", b""]

    run_on_service(body, sync=sync)


def test_a_publish_that_is_refused_fails_alone() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        topic = await open_topic(rig)
        sync.let()
        await publish(rig, topic, b"0", closes=True)
        publishing = rig.service.publishing
        before = rig.begin(publishing.publish(rig.session, [Publication("a", NewMessages([b"1"]))]))
        await sync.wait_begun(3)
        calls = [
            rig.begin(publishing.publish(new_session(), [Publication(name, NewMessages([b"2"]))]))
            for name in ("a", "t", "new")
        ]
        sync.let_all()
        done, refused, new = await asyncio.gather(*calls, return_exceptions=True)

        assert list((await before)[0].offsets) == [0]
        assert isinstance(done, list)
        assert list(done[0].offsets) == [1]
        assert isinstance(refused, FailedPrecondition)
        assert str(refused) == "topic 't' is closed, and takes no more messages [tail=1 closed=1]"
        assert isinstance(new, list)
        assert list(new[0].offsets) == [0]

    run_on_service(body, sync=sync)


def test_messages_are_read_once_they_are_durable() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        topic = await open_topic(rig)
        publishing = rig.begin(publish(rig, topic, b"a"))
        await sync.wait_begun(2)
        waiting = read(rig, topic, wait_ms=MINUTE_MS)
        early = await read(rig, topic)
        assert topic.state.next_offset(0) == 1
        assert (payloads_of(early), early.end_offset) == ([], 0)
        assert not waiting.done()

        sync.let_all()

        assert payloads_of(await waiting) == [b"a"]
        assert list((await publishing).offsets) == [0]

    run_on_service(body, sync=sync)


@on_service(limits(auto_create_topics=False))
async def test_a_server_that_creates_no_topics_refuses_unknown_ones(rig: ServiceRig) -> None:
    with pytest.raises(NotFound, match="there is no topic 't'"):
        await open_topic(rig)
    to = [Publication("t", NewMessages([b"x"]))]
    call = rig.begin(rig.service.publishing.publish(rig.session, to))
    with pytest.raises(NotFound, match="there is no topic 't'"):
        await call
    assert await rig.service.topics.create_topic("t", TopicConfig(partitions=0), rig.session)
    assert not await rig.service.topics.create_topic("t", TopicConfig(), rig.session)
    assert (await rig.service.publishing.publish(rig.session, to))[0].at_ms


@on_service()
async def test_a_call_names_a_topic_twice_only_without_producers(rig: ServiceRig) -> None:
    plain = Publication("t", NewMessages([b"x"]))
    numbered = Publication("t", NewMessages([b"x"]), producer=Producer("p", 1, 1))

    twice = await rig.service.publishing.publish(rig.session, [plain, plain])

    assert [list(each.offsets) for each in twice] == [[0], [1]]
    with pytest.raises(InvalidArgument, match="publications: topic 't' is there twice"):
        await rig.service.publishing.publish(rig.session, [plain, numbered])
    (first,) = await rig.service.publishing.publish(rig.session, [numbered])
    (again,) = await rig.service.publishing.publish(rig.session, [numbered])
    assert (list(first.offsets), first.is_repeat) == ([2], False)
    assert (list(again.offsets), again.is_repeat, list(again.ids)) == ([2], True, list(first.ids))


# --- reading --------------------------------------------------------------------------------------


@on_service()
async def test_a_read_waits_until_a_message_comes_or_its_time_is_up(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    served = read(rig, topic, LATEST, wait_ms=MINUTE_MS)
    too_late = read(rig, await open_topic(rig, "other"), wait_ms=SECOND_MS)
    before_ms = rig.clock.now_ms()
    await turns()
    assert (served.done(), too_late.done()) == (False, False)

    await publish(rig, topic, b"a")

    assert payloads_of(await served) == [b"a"]
    assert payloads_of(await too_late) == []
    assert rig.clock.now_ms() - before_ms == SECOND_MS


@on_service()
async def test_a_read_does_not_wait_where_nothing_can_come(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await publish(rig, topic, b"a", b"b")
    at = Position(Start.OFFSET, 1)
    bounded = await read(rig, topic, at, bounds=Bounds(end_offset=1), wait_ms=MINUTE_MS)
    assert (payloads_of(bounded), bounded.next_offset, bounded.is_closed) == ([], 1, False)
    waiting = read(rig, topic, LATEST, wait_ms=MINUTE_MS)
    await turns()

    await rig.service.topics.close(topic)

    found = await waiting
    assert (payloads_of(found), found.is_closed, found.end_offset) == ([], True, 2)
    for offset, moves in ((3, False), (3, True)):
        position = Position(Start.OFFSET, offset, moves=moves)
        if moves:
            assert (await read(rig, topic, position)).next_offset == 2
        else:
            with pytest.raises(OutOfRange) as caught:
                await read(rig, topic, position)
            assert caught.value.numbers == {"first": 0, "next": 2}


@on_service()
async def test_a_read_is_cut_to_what_the_server_allows(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await publish(rig, topic, *[bytes(1000)] * 500)
    await publish(rig, topic, *[bytes(1000)] * 500)

    found = await read(rig, topic, bounds=Bounds(messages=2**32 - 1, bytes=2**64 - 1))

    size = sum(len(piece.payloads) for piece in found.packed)
    assert 900_000 < size <= rig.service.limits.slice_bytes_max < 1024 * 1024
    rest = await read(rig, topic, Position(Start.OFFSET, found.next_offset))
    assert found.count + rest.count == 1000
    assert (await read(rig, topic, bounds=Bounds(messages=3))).count == 3
    assert (await read(rig, topic, bounds=Bounds(bytes=1))).count == 1


@on_service()
async def test_a_deleted_topic_ends_reads_that_wait(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    waiting = read(rig, topic, wait_ms=MINUTE_MS)
    await turns()

    assert await rig.service.topics.delete_topic("t", rig.session)

    with pytest.raises(NotFound, match="topic 't' was deleted"):
        await waiting
    with pytest.raises(NotFound, match="topic 't' was deleted"):
        await publish(rig, topic, b"x")
    again = await open_topic(rig)
    assert again.state is not topic.state
    assert list((await publish(rig, again, b"x")).offsets) == [0]
    assert rig.reclaimer_wakes


@on_service()
async def test_a_topic_that_nobody_uses_expires_and_use_keeps_it(rig: ServiceRig) -> None:
    settings = TopicSettings(ttl_ms=10 * SECOND_MS)
    await rig.service.topics.create_topic("t", TopicConfig(settings), rig.session)
    topic = await open_topic(rig)
    async with rig.sweeper():
        for _ in range(4):
            await asyncio.sleep(6)
            await read(rig, topic)
        waiting = read(rig, topic, wait_ms=MINUTE_MS)
        before_ms = rig.clock.now_ms()
        with pytest.raises(NotFound, match="topic 't' was deleted, or has expired"):
            await waiting
        assert rig.clock.now_ms() - before_ms <= 11 * SECOND_MS
        assert rig.service.topics.list_topics("", "", 0, rig.session) == ([], False)


@on_service()
async def test_lists_are_pages_of_names(rig: ServiceRig) -> None:
    for name in ("b", "a/2", "a/1", "c"):
        await open_topic(rig, name)

    assert rig.service.topics.list_topics("", "", 0, rig.session) == (
        ["a/1", "a/2", "b", "c"],
        False,
    )
    assert rig.service.topics.list_topics("", "", 2, rig.session) == (["a/1", "a/2"], True)
    assert rig.service.topics.list_topics("a/", "a/1", 2, rig.session) == (["a/2"], False)


@on_service()
async def test_lists_do_not_have_topics_that_have_expired(rig: ServiceRig) -> None:
    for name, settings in (("a", TopicSettings(ttl_ms=1000)), ("b", TopicSettings())):
        await rig.service.topics.create_topic(name, TopicConfig(settings), rig.session)

    rig.clock.advance(2000)

    assert rig.service.topics.list_topics("", "", 1, rig.session) == (["b"], False), "not swept yet"


def test_nobody_hears_that_a_topic_is_closed_before_that_is_durable() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        await rig.service.topics.create_topic("t", TopicConfig(partitions=2), rig.session)
        sync.let()
        topic = await open_topic(rig)
        closing = rig.begin(publish(rig, topic, b"last", partition=1, closes=True))
        await turns()
        before = await rig.service.reads.read(topic, 0, Position(), Bounds())

        sync.let_all()
        await closing

        after = await rig.service.reads.read(topic, 0, Position(), Bounds())
        assert (before.is_closed, after.is_closed) == (False, True)

    run_on_service(body, sync=sync)


def test_a_read_tells_no_place_behind_what_is_durable() -> None:
    """A crash would take it back, and the next messages would get those offsets."""
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        settings = TopicSettings(retention_messages=1)
        sync.let()
        await rig.service.topics.create_topic("t", TopicConfig(settings), rig.session)
        sync.let()
        topic = await open_topic(rig)
        sync.let()
        await publish(rig, topic, b"0")
        # Those with a condition are not joined, so each is a block.
        publishing = [rig.begin(publish(rig, topic, b"x", expected_offset=n)) for n in (1, 2)]
        await turns()
        while rig.service.sweep():
            pass
        assert topic.state.first_offset(0) == 2, "written, and not durable"

        for start in (Position(), Position(Start.LATEST), Position(Start.OFFSET, 0, moves=True)):
            found = await rig.service.reads.read(topic, 0, start, Bounds())
            assert (found.first_kept, found.next_offset, found.end_offset) == (1, 1, 1), start
        assert found.missed == 1

        sync.let_all()
        for each in publishing:
            await each
        found = await rig.service.reads.read(topic, 0, Position(Start.OFFSET, 1, True), Bounds())
        assert (found.missed, found.first_kept, found.end_offset) == (1, 2, 3)

    run_on_service(body, sync=sync)
