"""A connection holds its peer to the rules of HTTP/2, and to bounds of its own.

`python -m conformance.http2` runs a public suite of the rules.
"""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.gateway.grpc.http2 import connection as module
from queueber.gateway.grpc.http2.call import STREAM_WINDOW, Call
from queueber.gateway.grpc.http2.calls_table import CALLS_MAX
from queueber.gateway.grpc.http2.frames import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_BYTES,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    PING,
    PREFACE,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    WINDOW,
    frame,
    reset,
    window_update,
)
from queueber.gateway.grpc.http2.messages import prefix
from queueber.gateway.grpc.statuses import Status
from tests.gateway.grpc.http2.peer import HEADS, Frames, Peer, frames_of, message


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


def data_of(frames: Frames, stream: int) -> bytes:
    return b"".join(each[3] for each in frames if each[0] == DATA and each[2] == stream)


def status_of(peer: Peer, frames: Frames, stream: int) -> tuple[str, str]:
    """The status in the last head of the stream."""
    block = [each[3] for each in frames if each[0] == HEADERS and each[2] == stream][-1]
    fields = peer.fields(block)
    return fields["grpc-status"], fields.get("grpc-message", "")


def goaways(frames: Frames) -> list[int]:
    return [int.from_bytes(each[3][4:8]) for each in frames if each[0] == GOAWAY]


def test_a_call_is_answered_and_leaves_nothing_behind() -> None:
    async def story() -> None:
        peer = Peer()
        await peer.greet()
        heard = await peer.say(peer.head(1), message(1, b"hello", is_last=True))
        assert data_of(heard, 1) == prefix(5) + b"hello"
        assert [each[:3] for each in heard] == [
            (HEADERS, END_HEADERS, 1), (DATA, 0, 1), (HEADERS, END_HEADERS | END_STREAM, 1),
        ]  # fmt: skip
        assert peer.shared.bodies.used == 0
        assert (peer.connection.calls.open, peer.shared.waiting) == ({}, {})

    run(story)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 100_000),
    st.integers(0, 70_000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 50_000)), max_size=30),
)
def test_no_more_is_sent_than_the_peer_takes_and_nothing_is_lost(
    size: int, window: int, updates: list[tuple[bool, int]]
) -> None:
    async def story() -> None:
        peer, sent = Peer(), bytes(range(256)) * (size // 256 + 1)
        raw = sent[:size]
        await peer.greet({INITIAL_WINDOW_SIZE: window})
        whole = prefix(size) + raw
        pieces = [whole[at : at + FRAME_BYTES] for at in range(0, len(whole), FRAME_BYTES)]
        heard = await peer.say(peer.head(1), *(frame(DATA, 0, 1, each) for each in pieces))
        of_stream, of_all = window, WINDOW
        found = data_of(heard, 1)
        for is_of_stream, more in updates:
            assert len(found) <= min(of_stream, of_all)
            of_stream, of_all = of_stream + more * is_of_stream, of_all + more * (not is_of_stream)
            found += data_of(await peer.say(window_update(int(is_of_stream), more)), 1)
        assert len(found) == min(of_stream, of_all, size + 5)
        await peer.say(window_update(0, size + 5), window_update(1, size + 5))
        found = data_of(frames_of(peer.transport.sent), 1)
        assert found == prefix(size) + raw

    run(story)


async def _never(call: Call) -> None:
    await asyncio.get_running_loop().create_future()


def test_a_peer_that_sends_more_than_it_may_loses_its_call() -> None:
    async def story() -> None:
        peer = Peer(_never)
        await peer.greet()
        await peer.say(peer.head(1))
        sent, part = 0, message(1, bytes(16_000))
        resets: Frames = []
        while not resets and sent < 2 * STREAM_WINDOW:
            sent += 16_005
            resets = [each for each in await peer.say(part) if each[0] == RST_STREAM]
        assert resets == [(RST_STREAM, 0, 1, FLOW_CONTROL_ERROR.to_bytes(4))]
        assert sent - 16_005 <= STREAM_WINDOW < sent  # nobody reads, so it is not told to go on
        assert peer.shared.bodies.used == 0

    run(story)


def test_calls_above_the_limit_are_refused_and_the_others_go_on() -> None:
    async def story() -> None:
        peer = Peer(_never)
        await peer.greet()
        heads = [peer.head(2 * at + 1) + message(2 * at + 1, b"m") for at in range(CALLS_MAX + 2)]
        heard = await peer.say(*heads)
        late = [2 * CALLS_MAX + 1, 2 * CALLS_MAX + 3]
        assert [each for each in heard if each[0] == RST_STREAM] == [
            (RST_STREAM, 0, stream, REFUSED_STREAM.to_bytes(4)) for stream in late
        ]
        assert len(peer.connection.calls.open) == CALLS_MAX
        assert not peer.transport.is_over

    run(story)


def test_a_call_that_its_caller_resets_ends_its_handler() -> None:
    async def story() -> None:
        ended: list[str] = []

        async def waits(call: Call) -> None:
            try:
                await _never(call)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        peer = Peer(waits)
        await peer.greet()
        await peer.say(peer.head(1), message(1, b"m"))
        assert (await peer.say(reset(1, CANCEL)), ended) == ([], ["cancelled"])
        assert peer.shared.bodies.used == 0
        await peer.say(peer.head(3), message(3, b"m"))
        peer.connection.connection_lost(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ended == ["cancelled"] * 2
        assert (peer.shared.connections, peer.connection.calls.open) == (set(), {})

    run(story)


def test_a_message_that_is_not_taken_is_refused_before_it_has_come() -> None:
    async def story() -> None:
        peer = Peer()
        await peer.greet()
        heard = await peer.say(peer.head(1), frame(DATA, 0, 1, prefix((1 << 20) + 1)))
        assert status_of(peer, heard, 1) == (
            str(Status.RESOURCE_EXHAUSTED.value),
            "request: it has 1048577 bytes; the limit is 1048576",
        )
        assert heard[-1] == (RST_STREAM, 0, 1, NO_ERROR.to_bytes(4))
        heard = await peer.say(peer.head(3), frame(DATA, 0, 3, b"\1\0\0\0\1"))
        assert status_of(peer, heard, 3)[0] == str(Status.UNIMPLEMENTED.value)
        # What is on its way is passed over, and the connection goes on.
        assert await peer.say(frame(DATA, END_STREAM, 1, b"rest")) == []
        heard = await peer.say(peer.head(5), message(5, b"m", is_last=True))
        assert data_of(heard, 5) == prefix(1) + b"m"
        assert peer.shared.bodies.used == 0

    run(story)


def test_messages_that_would_not_fit_into_memory_are_refused() -> None:
    async def story() -> None:
        peer = Peer(_never, bodies=100)
        await peer.greet()
        heard = await peer.say(
            peer.head(1), message(1, bytes(90)), peer.head(3), message(3, b"m" * 9)
        )
        assert status_of(peer, heard, 3)[0] == str(Status.UNAVAILABLE.value)
        assert peer.shared.bodies.used == 95

    run(story)


def test_a_message_without_its_end_is_an_error_and_none_begins_the_handler() -> None:
    async def story() -> None:
        async def empty(call: Call) -> None:
            call.finish(Status.OK if call.read_nowait() is None else Status.UNKNOWN)

        peer = Peer(empty)
        await peer.greet()
        heard = await peer.say(peer.head(1, flags=END_HEADERS | END_STREAM))
        assert status_of(peer, heard, 1) == ("0", "")
        heard = await peer.say(peer.head(3), frame(DATA, END_STREAM, 3, prefix(9) + b"m"))
        assert status_of(peer, heard, 3)[0] == str(Status.INTERNAL.value)

    run(story)


def test_what_is_no_grpc_is_told_so() -> None:
    async def story() -> None:
        peer = Peer()
        await peer.greet()
        plain = peer._encoder.encode([(":method", "GET"), *HEADS[1:]])
        heard = await peer.say(frame(HEADERS, END_HEADERS | END_STREAM, 1, plain))
        assert peer.fields(heard[0][3]) == {":status": "405"}
        assert data_of(heard, 1) == b"this port speaks gRPC\n"
        # One that takes no text is not waited for.
        peer = Peer()
        await peer.greet({INITIAL_WINDOW_SIZE: 0})
        heard = await peer.say(frame(HEADERS, END_HEADERS | END_STREAM, 1, plain))
        assert [each[:2] for each in heard] == [(HEADERS, END_HEADERS | END_STREAM)]
        assert peer.connection.calls.open == {}

    run(story)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([frame(PING, 0, 1, bytes(8))], PROTOCOL_ERROR),
        ([frame(DATA, 0, 0, b"x")], PROTOCOL_ERROR),
        ([frame(DATA, 0, 1, b"x")], PROTOCOL_ERROR),
        ([window_update(0, 0)], PROTOCOL_ERROR),
        ([window_update(0, (1 << 31) - 1)], FLOW_CONTROL_ERROR),
        ([frame(HEADERS, 0, 1, b"\x83"), frame(PING, 0, 0, bytes(8))], PROTOCOL_ERROR),
        ([frame(SETTINGS, 0, 0)] * 1001, ENHANCE_YOUR_CALM),
        ([frame(PING, 0, 0, bytes(8))] * 4, ENHANCE_YOUR_CALM),
    ],
)
def test_a_peer_that_breaks_a_rule_of_the_connection_is_told_and_cut(
    frames: list[bytes], code: int
) -> None:
    async def story() -> None:
        peer = Peer()
        await peer.greet()
        assert goaways(await peer.say(*frames)) == [code]
        assert peer.transport.is_over

    run(story)


def test_pings_are_answered_and_are_no_strike_after_an_answer() -> None:
    async def story() -> None:
        peer, ping = Peer(), frame(PING, 0, 0, b"12345678")
        await peer.greet()
        for at in range(10):
            stream = 2 * at + 1
            await peer.say(peer.head(stream), message(stream, b"m", is_last=True))
            assert (PING, 1, 0, b"12345678") in await peer.say(ping)
        assert not peer.transport.is_over

    run(story)


def test_what_is_no_http2_is_cut_and_so_are_connections_above_the_limit() -> None:
    async def story() -> None:
        peer = Peer()
        await peer.say(b"GET / HTTP/1.1\r\n\r\n")
        assert peer.transport.is_over
        peer = Peer()
        await peer.say(PREFACE[:10])
        assert not peer.transport.is_over
        others = [module.Connection(peer.shared) for _ in range(2)]
        for each in others:
            each.connection_made(type(peer.transport)())
        assert [each._transport.is_over for each in others] == [False, True]

    run(story)


def test_nothing_is_read_from_a_peer_that_does_not_read() -> None:
    async def story() -> None:
        peer = Peer()
        await peer.greet()
        peer.connection.pause_writing()
        assert not peer.transport.reads
        assert await peer.say(peer.head(1), message(1, b"m", is_last=True)) == []
        peer.connection.resume_writing()
        assert data_of(await peer.heard(), 1) == prefix(1) + b"m"
        assert peer.transport.reads

    run(story)


def test_a_peer_that_sends_much_does_not_keep_others_waiting() -> None:
    async def story() -> None:
        seen: list[int] = []

        async def note(call: Call) -> None:
            seen.append(call.stream)
            call.finish(Status.OK)

        peer = Peer(note)
        await peer.greet()
        frames = [
            peer.head(2 * at + 1) + message(2 * at + 1, b"m", is_last=True) for at in range(60)
        ]
        peer.connection.data_received(b"".join(frames))
        counts = []
        for _ in range(40):
            await asyncio.sleep(0)
            counts.append(len(seen))
        steps = {after - before for before, after in pairwise(counts)}
        assert max(steps) <= module._CALLS_A_TURN + 1
        assert counts[-1] == 60

    run(story)


def test_a_server_that_stops_refuses_new_calls_and_waits_for_those_under_way() -> None:
    async def story() -> None:
        release = asyncio.Event()

        async def waits(call: Call) -> None:
            await release.wait()
            await call.answer(b"done")

        peer = Peer(waits)
        await peer.greet()
        await peer.say(peer.head(1), message(1, b"m", is_last=True))
        peer.shared.is_stopping = True
        peer.connection.stop()
        heard = await peer.say(peer.head(3), message(3, b"m", is_last=True))
        assert goaways(heard) == [NO_ERROR]
        assert (RST_STREAM, 0, 3, REFUSED_STREAM.to_bytes(4)) in heard
        release.set()
        heard = await peer.heard()
        assert data_of(heard, 1) == prefix(4) + b"done"
        assert peer.transport.is_over
        peer.connection.connection_lost(None)
        assert peer.shared.are_gone.is_set()

    run(story)
