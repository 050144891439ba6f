"""Streams: whatever comes in pieces arrives in order, and what is written in a turn leaves
together."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.wire.stream import Stream
from tests.support.stream_sides import Reader, Socket, receive

SCRATCH = 16


class Rig:
    def __init__(self) -> None:
        self.socket, self.reader = Socket(), Reader()
        self.stream = Stream(self.reader, memoryview(bytearray(SCRATCH)))
        self.stream.connection_made(self.socket)

    def receive(self, data: bytes) -> int:
        return receive(self.stream, self.socket, data)


def on_a_loop(test: Callable[[Rig], Any]) -> None:
    async def run() -> None:
        result = test(Rig())
        if result is not None:
            await result

    asyncio.run(run())


asks = st.tuples(st.integers(1, 40), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair)))


@given(
    data=st.binary(max_size=400),
    steps=st.lists(st.one_of(st.integers(1, 60), asks), max_size=60),
)
def test_bytes_arrive_in_order_however_they_come_and_are_asked_for(
    data: bytes, steps: list[int | tuple[int, int]]
) -> None:
    def test(rig: Rig) -> None:
        received = 0
        for step in steps:
            if isinstance(step, int):
                received += rig.receive(data[received : received + step])
            elif not rig.reader.is_asking:
                rig.reader.ask(*step)
            assert data.startswith(rig.reader.read)
        # Whoever asks for all gets all.
        while len(rig.reader.read) < len(data):
            if not rig.reader.is_asking:
                rig.reader.ask(1, 25)
            received += rig.receive(data[received:])
            if rig.reader.is_asking and received == len(data):
                break
        unfinished = rig.reader._count if rig.reader.is_asking else 0
        assert len(rig.reader.read) + unfinished == received == len(data)

    on_a_loop(test)


def test_socket_is_not_read_further_while_nobody_asks() -> None:
    def test(rig: Rig) -> None:
        assert rig.receive(bytes(10)) == 10
        assert rig.receive(bytes(10)) == 10
        assert not rig.socket.is_reading

        rig.reader.ask(8, 8)
        assert rig.socket.is_reading
        assert len(rig.reader.read) == 8

    on_a_loop(test)


def test_long_read_goes_past_the_scratch_buffer() -> None:
    def test(rig: Rig) -> None:
        rig.reader.ask(100, 100)

        assert rig.receive(bytes(range(100))) == 100
        assert rig.reader.read == bytes(range(100))

    on_a_loop(test)


def test_end_comes_after_all_that_was_sent_before_it() -> None:
    def test(rig: Rig) -> None:
        rig.receive(b"abcdef")
        assert rig.stream.eof_received()
        assert rig.reader.ends == 0

        rig.reader.ask(4, 4)
        assert (rig.reader.ends, rig.socket.is_closed) == (0, False)
        rig.reader.ask(2, 2)
        assert rig.reader.read == b"abcdef"
        assert (rig.reader.ends, rig.socket.is_closed) == (1, True)

    on_a_loop(test)


def test_end_of_a_silent_connection_is_told_at_once() -> None:
    def test(rig: Rig) -> None:
        rig.reader.ask(8, 8)
        assert not rig.stream.eof_received()
        assert rig.reader.ends == 1

    on_a_loop(test)


def test_what_is_written_in_a_turn_leaves_together() -> None:
    async def test(rig: Rig) -> None:
        for turn in (b"a", b"b"):
            rig.stream.write(turn)
            rig.stream.write(turn)
            assert turn + turn not in rig.socket.sent
            await asyncio.sleep(0)

        assert rig.socket.sent == [b"aa", b"bb"]

    on_a_loop(test)


def test_much_is_sent_at_once() -> None:
    async def test(rig: Rig) -> None:
        rig.stream.write(b"head")
        rig.stream.write(bytes(1 << 16))
        assert rig.socket.sent == [b"head", bytes(1 << 16)]
        rig.stream.write(b"tail")
        await asyncio.sleep(0)
        assert rig.socket.sent[2:] == [b"tail"]
        rig.stream.write(bytes(1 << 15))
        rig.stream.write(bytes(1 << 15))
        assert rig.socket.sent[3:] == [bytes(1 << 16)]

    on_a_loop(test)


@pytest.mark.parametrize("end", ["close", "write_eof"])
def test_what_was_written_leaves_before_the_end(end: str) -> None:
    async def test(rig: Rig) -> None:
        rig.stream.write(b"last words")
        getattr(rig.stream, end)()
        assert rig.socket.sent == [b"last words"]
        assert (rig.stream.is_closing(), rig.socket.has_ended) == (end == "close", end != "close")
        await asyncio.sleep(0)
        assert rig.socket.sent == [b"last words"]

    on_a_loop(test)


def test_nothing_is_sent_after_the_connection_was_lost() -> None:
    async def test(rig: Rig) -> None:
        error = ConnectionResetError()
        rig.stream.write(b"x")
        rig.socket.is_closed = True
        rig.stream.connection_lost(error)
        rig.stream.write(b"y")
        await asyncio.sleep(0)
        assert rig.socket.sent == []
        assert rig.reader.losses == [error]

    on_a_loop(test)


def test_writer_is_told_when_the_socket_is_full() -> None:
    def test(rig: Rig) -> None:
        rig.stream.pause_writing()
        assert rig.reader.is_paused_for_writing
        rig.stream.resume_writing()
        assert not rig.reader.is_paused_for_writing

    on_a_loop(test)
