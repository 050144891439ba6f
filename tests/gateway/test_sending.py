"""Large answers are encoded and sent in pieces: the same bytes, and others get their turns."""

import asyncio
import functools
import gc
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import msgspec
import pytest
from starlette.types import Message

from queueber.gateway.bodies import HungUp
from queueber.gateway.bounds import Bound
from queueber.gateway.queues.items import LeasedItem, PollAnswer
from queueber.gateway.routes import NoQuery
from queueber.gateway.sending import (
    CONNECTION,
    PART_BYTES,
    PIECE_BYTES,
    Sending,
    check_present,
    encode_pieces,
)
from queueber.gateway.topics.groups.settings import OrderedGroup
from queueber.limits import KIB, MIB

P = ParamSpec("P")


def awaited(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def item(size: int) -> LeasedItem:
    return LeasedItem("00", b"x" * size, 1, 1, 1, "ä\n", None, {"a": "b"}, None)


class Held:
    """A connection that counts."""

    is_full = False
    is_gone = False

    def __init__(self) -> None:
        self.now = self.most = 0

    def hold(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)


@pytest.mark.parametrize(
    "value",
    [
        NoQuery(),
        PollAnswer(None, []),
        PollAnswer("aa", [item(10)]),
        PollAnswer("aa", [item(100), item(PIECE_BYTES), item(0), item(3 * MIB), item(5)]),
        PollAnswer("aa", [item(1000) for _ in range(1000)]),
        OrderedGroup(),
    ],
    ids=["no field", "no element", "one", "large and small", "many", "tagged"],
)
@awaited
async def test_the_pieces_are_the_json_of_the_answer(value: msgspec.Struct) -> None:
    pieces = await encode_pieces(value)

    assert b"".join(pieces) == msgspec.json.encode(value)
    assert all(len(each) <= PIECE_BYTES for each in pieces[:-1])


@awaited
async def test_others_get_turns_while_an_answer_is_encoded_and_sent() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def send(_: Message) -> None:
        pass

    other = asyncio.ensure_future(take_turns())
    pieces = await encode_pieces(PollAnswer("aa", [item(MIB) for _ in range(8)]))
    after_encoding, count = turns, len(pieces)
    await Sending({}, send).send_pieces(pieces)
    other.cancel()

    assert after_encoding >= 8
    assert turns - after_encoding >= count - 1


@awaited
async def test_a_body_is_held_until_it_is_sent_and_its_pieces_are_let_go() -> None:
    held, sizes, memory = Held(), [], []

    async def send(message: Message) -> None:
        sizes.append((len(message["body"]), message["more_body"]))
        del message
        memory.append(tracemalloc.get_traced_memory()[0])

    gc.collect()
    tracemalloc.start()
    try:
        pieces = await encode_pieces(PollAnswer("aa", [item(MIB) for _ in range(4)]))
        whole = sum(map(len, pieces))
        before = tracemalloc.get_traced_memory()[0]
        await Sending({CONNECTION: held}, send).send_pieces(pieces)
    finally:
        tracemalloc.stop()

    assert (held.most, held.now) == (whole, 0)
    assert sum(size for size, _ in sizes) == whole
    assert [more for _, more in sizes] == [True] * (len(sizes) - 1) + [False]
    assert memory[-1] < before - whole + 3 * PIECE_BYTES


@awaited
async def test_a_large_body_of_one_part_is_sent_in_pieces_too() -> None:
    sent: list[Any] = []

    async def send(message: Message) -> None:
        sent.append(message)

    held, body = Held(), bytes(range(256)) * (5 * KIB)
    sending = Sending({CONNECTION: held}, send)
    await sending({"type": "http.response.start", "status": 200, "headers": []})
    await sending({"type": "http.response.body", "body": body, "more_body": True})
    await sending({"type": "http.response.body", "body": b"end"})

    assert sending.status == 200
    assert b"".join(bytes(each.get("body", b"")) for each in sent) == body + b"end"
    assert [each.get("more_body", False) for each in sent[1:]] == [True] * (len(sent) - 2) + [False]
    assert max(len(each.get("body", b"")) for each in sent) == PART_BYTES
    assert (held.most, held.now) == (len(body), 0)


@awaited
async def test_what_could_not_be_sent_is_held_no_more() -> None:
    held = Held()

    async def send(_: Message) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await Sending({CONNECTION: held}, send).send_pieces([b"x" * 100, b"y" * 100])

    assert (held.most, held.now) == (200, 0)


@awaited
async def test_a_small_part_of_a_stream_is_held_while_its_caller_does_not_read() -> None:
    held, during = Held(), []

    async def send(_: Message) -> None:
        during.append(held.now)

    sending = Sending({CONNECTION: held}, send)
    await sending({"type": "http.response.start", "status": 200, "headers": []})
    for held.is_full in (False, True, False):
        await sending({"type": "http.response.body", "body": b"event", "more_body": True})

    assert during == [0, 0, len(b"event"), 0]
    assert held.now == 0


@awaited
async def test_a_caller_that_does_not_read_is_no_request_under_way() -> None:
    held, requests, during = Held(), Bound("requests are under way", 1), []

    async def send(_: Message) -> None:
        during.append(requests.used)

    sending = Sending({CONNECTION: held}, send)
    with sending.counted(requests):
        await sending({"type": "http.response.start", "status": 200, "headers": []})
        for held.is_full in (False, True, False):
            await sending({"type": "http.response.body", "body": b"event", "more_body": True})
        held.is_full = True
        await sending.send_pieces([b"x" * 100, b"y" * 100])
        within = requests.used
    await sending({"type": "http.response.body", "body": b"problem"})

    assert during == [1, 1, 0, 1, 0, 0, 0]
    assert (within, requests.used) == (1, 0)


def test_a_request_whose_caller_is_gone_is_not_handled() -> None:
    held = Held()
    check_present({CONNECTION: held})
    check_present({})
    held.is_gone = True

    with pytest.raises(HungUp):
        check_present({CONNECTION: held})
