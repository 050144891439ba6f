"""The server's end of a connection: what one caller can have it hold is bounded."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from queueber.clock import ManualClock
from queueber.errors import InvalidArgument, InvariantViolation, Unavailable
from queueber.limits import MIB
from queueber.rpc.buffers import MessageMemory
from queueber.rpc.fair_turns import CALLS_WHILE_NEW, READS_A_TURN, FairTurns
from queueber.rpc.served_stream import ServedStream
from queueber.rpc.stall_watch import (
    STALLED_SECONDS_CROWDED,
    STALLED_SECONDS_MAX,
    STALLED_SLICE_BYTES,
)
from queueber.service.session import CALLS_MAX, REFUSALS_MAX, WAIT_SECONDS_MAX
from queueber.wire.flow import Event, State
from tests.support.service_rig import new_session
from tests.support.stream_sides import Reader, Socket, receive
from tests.support.virtual_loop import run_virtually, turns

SCRATCH = 64
HIGH, LOW = 1 << 16, 1 << 14


class SlowSocket(Socket):
    """Sends when it is told to, and keeps the rest in a buffer as asyncio's transport does."""

    stream: ServedStream
    buffered = 0
    is_full = False

    def write(self, data: bytes) -> None:
        super().write(bytes(data))
        self.buffered += len(data)
        if self.buffered > HIGH and not self.is_full:
            self.is_full = True
            self.stream.pause_writing()

    def send(self, size: int) -> None:
        """The other end reads so much."""
        self.buffered = max(0, self.buffered - size)
        if self.is_full and self.buffered <= LOW:
            self.is_full = False
            self.stream.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.buffered


class Rig:
    def __init__(self, memory: MessageMemory | None = None) -> None:
        self.socket, self.reader = SlowSocket(), Reader()
        self.session = new_session()
        self.memory = memory or MessageMemory(MIB)
        scratch = memoryview(bytearray(SCRATCH))
        self.turns = in_turns = FairTurns(asyncio.get_running_loop())
        self.stream = ServedStream(self.reader, scratch, self.session, self.memory, in_turns)
        self.socket.stream = self.stream
        self.stream.connection_made(self.socket)

    def receive(self, data: bytes) -> int:
        return receive(self.stream, self.socket, data)

    def lose(self) -> None:
        self.stream.connection_lost(None)

    @property
    def unsent(self) -> int:
        return self.session.answers.bytes


def on_a_loop(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    run_virtually(ManualClock(), main())


def test_answers_that_nobody_reads_are_counted_and_no_further_call_is_read() -> None:
    async def test() -> None:
        rig = Rig()
        rig.reader.ask(8, 8)
        rig.stream.write(bytes(MIB))

        assert rig.unsent == MIB
        assert not rig.reader.is_paused_for_writing
        rig.receive(b"a call..")
        assert rig.reader.read == b""

        while rig.socket.is_full:
            rig.socket.send(100_000)
        assert rig.reader.read == b"a call.."
        assert rig.unsent == 0
        assert sum(map(len, rig.socket.sent)) == MIB
        rig.lose()

    on_a_loop(test)


def test_who_was_refused_too_often_is_heard_no_more_and_hung_up_on() -> None:
    async def test() -> None:
        rig = Rig()
        rig.reader.ask(8, 8)
        for _ in range(REFUSALS_MAX - 1):
            rig.session.refused(InvalidArgument("no"))
        rig.receive(b"a call..")
        assert rig.reader.read == b"a call.."

        rig.session.refused(InvalidArgument("no"))
        rig.receive(b"and more")
        rig.stream.write(b"the last answer")
        await asyncio.sleep(STALLED_SECONDS_CROWDED + 0.1)

        assert rig.reader.read == b"a call.."
        assert rig.socket.sent == [b"the last answer"]
        assert rig.socket.is_closing()
        rig.lose()

    on_a_loop(test)


@given(
    pieces=st.lists(st.integers(1, 400_000), min_size=1, max_size=8),
    reads=st.lists(st.integers(1, 300_000), max_size=20),
)
def test_answers_leave_in_order_however_they_are_read(pieces: list[int], reads: list[int]) -> None:
    async def test() -> None:
        rig = Rig()
        told = b""
        for number, size in enumerate(pieces):
            piece = bytes([number]) * size
            told += piece
            rig.stream.write(piece)
            if reads:
                rig.socket.send(reads.pop())
            await asyncio.sleep(0)
        while rig.socket.buffered:
            rig.socket.send(50_000)
        assert b"".join(rig.socket.sent) == told
        assert rig.unsent == 0
        rig.lose()

    on_a_loop(test)


@given(
    data=st.binary(max_size=3000),
    sizes=st.lists(st.integers(1, 200), max_size=40),
    least=st.sampled_from([1, 7, 100, 3000]),
)
def test_bytes_arrive_in_order_over_many_turns(data: bytes, sizes: list[int], least: int) -> None:
    async def test() -> None:
        rig = Rig()
        received = 0
        while len(rig.reader.read) < len(data):
            if not rig.reader.is_asking:
                left = len(data) - len(rig.reader.read)
                rig.reader.ask(min(left, least), min(left, least + 2))
            size = sizes.pop() if sizes else 50
            received += rig.receive(data[received : received + size])
            await asyncio.sleep(0)
        assert rig.reader.read == data
        rig.lose()

    on_a_loop(test)


def test_one_caller_gets_so_many_reads_in_a_turn() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream._unread += bytes(2000)
        for _ in range(READS_A_TURN + 5):
            if not rig.reader.is_asking:
                rig.reader.ask(8, 8)

        assert len(rig.reader.read) == 8 * READS_A_TURN
        await turns(3)
        assert len(rig.reader.read) == 8 * READS_A_TURN + 8
        rig.lose()

    on_a_loop(test)


@pytest.mark.parametrize("calls", [CALLS_WHILE_NEW - 1, CALLS_WHILE_NEW])
def test_one_that_is_new_takes_turns_with_others_that_are(calls: int) -> None:
    async def test() -> None:
        rig = Rig()
        rig.session.begun_ever = calls
        rig.reader.ask(8, 8)
        for _ in range(5):
            rig.turns.wait(lambda: None)

        rig.receive(b"12345678")

        is_new = calls < CALLS_WHILE_NEW
        assert bytes(rig.reader.read) == (b"" if is_new else b"12345678")
        await turns(6)
        assert rig.reader.read == b"12345678"
        rig.lose()

    on_a_loop(test)


def test_calls_that_lie_here_while_answers_wait_are_read_afterwards() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream._unread += bytes(64)
        rig.reader.ask(8, 8)
        rig.stream.write(bytes(MIB // 4))
        rig.reader.ask(8, 8)
        await asyncio.sleep(3)
        assert len(rig.reader.read) == 8
        while rig.socket.is_full:
            rig.socket.send(100_000)
        assert len(rig.reader.read) == 16
        rig.lose()

    on_a_loop(test)


def test_rejected_transition_changes_nothing() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream._unread += bytes(8)

        with pytest.raises(InvariantViolation, match="SHARE_USED in state IDLE"):
            rig.stream._on(Event.SHARE_USED)

        assert (rig.stream.flow, len(rig.stream._unread)) == (State.IDLE, 8)
        rig.reader.ask(8, 8)
        assert len(rig.reader.read) == 8
        rig.lose()

    on_a_loop(test)


def test_caller_with_too_many_calls_is_not_read_until_some_have_ended() -> None:
    async def test() -> None:
        rig = Rig()
        rig.session.begun_ever = CALLS_WHILE_NEW
        for _ in range(CALLS_MAX):
            rig.session.enter()
        rig.reader.ask(8, 8)

        rig.receive(b"a call..")

        assert (bytes(rig.reader.read), rig.stream.flow) == (b"", State.TOO_MANY_CALLS)
        rig.session.leave()
        assert rig.reader.read == b"a call.."
        rig.lose()

    on_a_loop(test)


def test_caller_of_a_full_server_is_held_back_for_a_while_and_then_refused() -> None:
    async def test() -> None:
        rig = Rig()
        admission = rig.session._admission
        admission.calls_max = 1
        rig.session.begun_ever = CALLS_WHILE_NEW
        rig.reader.ask(8, 8)
        rig.receive(b"a call..")
        rig.session.admit()
        admission.enter()
        rig.reader.ask(8, 8)
        rig.receive(b"and one.")
        assert (bytes(rig.reader.read), rig.stream.flow) == (b"a call..", State.TOO_MANY_CALLS)

        await asyncio.sleep(WAIT_SECONDS_MAX + 0.1)

        assert rig.reader.read == b"a call..and one."
        with pytest.raises(Unavailable, match="1 calls are under way, the limit"):
            rig.session.admit()
        admission.leave()
        rig.lose()

    on_a_loop(test)


def test_connection_that_is_lost_while_it_is_held_back_is_forgotten() -> None:
    async def test() -> None:
        rig = Rig()
        rig.session.begun_ever = CALLS_WHILE_NEW
        for _ in range(CALLS_MAX):
            rig.session.enter()
        rig.reader.ask(8, 8)
        rig.receive(b"a call..")

        rig.lose()
        rig.session.leave()

        assert (bytes(rig.reader.read), rig.stream.flow) == (b"", State.LOST)

    on_a_loop(test)


def test_long_message_waits_for_room_and_comes_whole() -> None:
    async def test() -> None:
        memory = MessageMemory(1000)
        first, second = Rig(memory), Rig(memory)
        data = bytes(range(256)) * 3
        first.reader.ask(768, 768)
        second.reader.ask(768, 768)
        first.receive(data[:500])
        assert second.receive(data[: SCRATCH // 2]) == SCRATCH // 2
        await turns()
        assert not second.socket.is_reading

        first.receive(data[500:])
        assert first.reader.read == data
        assert second.socket.is_reading
        received = len(second.stream._unread) + second.reader._count
        while len(second.reader.read) < 768:
            received += second.receive(data[received:])
        assert second.reader.read == data
        assert memory.bytes == 0
        first.lose()
        second.lose()

    on_a_loop(test)


def test_room_of_a_message_that_never_ends_is_given_back_with_its_connection() -> None:
    async def test() -> None:
        rig = Rig()
        rig.reader.ask(1000, 1000)
        rig.receive(bytes(100))
        assert rig.memory.bytes == 1000
        rig.lose()
        assert rig.memory.bytes == 0

    on_a_loop(test)


def test_one_who_does_not_read_is_hung_up_on() -> None:
    async def test() -> None:
        rig = Rig()
        rig.session.name = "slow reader"
        rig.stream.write(bytes(MIB // 4))
        await asyncio.sleep(STALLED_SECONDS_MAX - 1)
        assert not rig.socket.is_closed
        with capture_logs() as logs:
            await asyncio.sleep(2)
        assert rig.socket.is_closed
        (line,) = logs
        assert (line["event"], line["caller"], line["client"]) == (
            "connection_stalled",
            "10.1.2.3:4567",
            "slow reader",
        )

    on_a_loop(test)


def test_one_who_reads_slowly_is_not() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream.write(bytes(4 * MIB // 5))
        for _ in range(3):
            await asyncio.sleep(STALLED_SECONDS_MAX - STALLED_SECONDS_CROWDED)
            rig.socket.send(STALLED_SLICE_BYTES)
        assert not rig.socket.is_closed
        rig.lose()

    on_a_loop(test)


def test_one_who_does_not_read_is_hung_up_on_sooner_when_others_need_the_room() -> None:
    async def test() -> None:
        rig = Rig()
        rig.session.answers.budget.bytes += 3 * MIB
        rig.stream.write(bytes(MIB // 4))
        await asyncio.sleep(STALLED_SECONDS_CROWDED + 1)
        assert rig.socket.is_closed

    on_a_loop(test)


def test_one_who_does_not_send_the_rest_of_a_long_message_is_hung_up_on() -> None:
    async def test() -> None:
        rig = Rig()
        rig.reader.ask(MIB // 2, MIB // 2)
        rig.receive(bytes(1000))
        await asyncio.sleep(STALLED_SECONDS_MAX + 1)
        assert rig.socket.is_closed

    on_a_loop(test)


def test_end_of_writing_while_answers_wait_ends_the_connection() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream.write(bytes(MIB))
        rig.stream.write_eof()
        assert rig.socket.is_closed
        assert not rig.socket.has_ended

    on_a_loop(test)


def test_end_comes_after_all_that_was_sent_before_it() -> None:
    async def test() -> None:
        rig = Rig()
        rig.receive(b"abcdef")
        assert rig.stream.eof_received()
        assert rig.reader.ends == 0
        rig.reader.ask(6, 6)
        assert (rig.reader.ends, rig.socket.is_closed) == (1, True)

    on_a_loop(test)


def test_end_of_a_silent_connection_is_told_in_its_turn() -> None:
    async def test() -> None:
        rig = Rig()
        rig.reader.ask(8, 8)
        assert rig.stream.eof_received()
        assert (rig.reader.ends, rig.socket.is_closed) == (1, True)

    on_a_loop(test)


def test_a_read_that_needs_much_is_filled_from_what_is_there() -> None:
    async def test() -> None:
        rig = Rig()
        rig.stream._unread += bytes(5000)
        rig.reader.ask(5000, 5000)
        assert len(rig.reader.read) == 5000
        rig.lose()

    on_a_loop(test)


def test_end_after_bytes_that_nobody_wants_closes_the_connection() -> None:
    async def test() -> None:
        rig = Rig()
        rig.receive(b"no message of ours")
        rig.stream.eof_received()
        assert not rig.socket.is_closed
        await asyncio.sleep(STALLED_SECONDS_CROWDED + 1)
        assert rig.socket.is_closed

    on_a_loop(test)
