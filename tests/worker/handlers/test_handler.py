"""One call of a handler: what it returns or raises, as the server gets it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import queueber
from queueber.client import Item
from queueber.limits import ERROR_BYTES_MAX
from queueber.worker.handlers.work_item import Failed, HeldLease, WorkItem, failure_of, make_call
from tests.worker import samples

ITEM = WorkItem(Item(b"i" * 16, b'{"a": 1}', attempt=2, key="k"), HeldLease(b"l" * 16, 1, 0.0))


def _call(handler: Callable[[object], object], item: object) -> object:
    return handler(item)


def error_of(outcome: bytes | Failed) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error


@pytest.mark.parametrize(
    ("returned", "result"),
    [(b"x", b"x"), (None, b""), (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x")],
)
def test_bytes_pass_as_they_are_and_none_is_empty(returned: object, result: bytes) -> None:
    for serializer in (None, lambda _: b"serialized"):
        assert make_call(lambda _: returned, serializer, None)(ITEM) == result


def test_anything_else_goes_through_the_serializer() -> None:
    assert make_call(lambda _: 3, lambda value: b"%d" % value, None)(ITEM) == b"3"


class Strange(bytes):
    def __bytes__(self) -> bytes:
        return self


@pytest.mark.parametrize("returned", [3, Strange(b"x")])
def test_a_result_is_plain_bytes_whatever_kind_of_bytes_was_made(returned: object) -> None:
    outcome = make_call(lambda _: returned, lambda _: Strange(b"x"), None)(ITEM)

    assert outcome == b"x"
    assert type(outcome) is bytes


def test_a_serializer_that_makes_text_fails_the_item() -> None:
    outcome = make_call(lambda _: 3, str, None)(ITEM)  # type: ignore[arg-type]

    assert error_of(outcome).startswith("TypeError: the serializer made str of int, not bytes")


def test_a_deserializer_that_fails_fails_the_item() -> None:
    def deserialize(contents: bytes) -> object:
        return contents.missing  # type: ignore[attr-defined]

    outcome = make_call(samples.double, None, deserialize)(ITEM)

    assert error_of(outcome).startswith("AttributeError: ")


def test_a_generator_is_no_handler() -> None:
    def yields(item: object) -> Any:
        yield item

    async def yields_soon(item: object) -> Any:
        yield item

    for handler in (yields, yields_soon, partial(yields)):
        with pytest.raises(queueber.InvalidArgument, match="is a generator; a call of it runs no"):
            queueber.Worker(handler=handler)
        outcome = make_call(partial(_call, handler), lambda _: b"", None)(ITEM)
        assert error_of(outcome).startswith("TypeError: the handler returned a generator, which")


def test_a_handler_that_returns_a_coroutine_is_told_to_be_async() -> None:
    outcome = make_call(samples.double_soon, None, None)(ITEM)

    assert error_of(outcome).startswith("TypeError: the handler returned a coroutine")


def test_an_item_is_what_the_client_leased_and_more() -> None:
    assert isinstance(ITEM, queueber.Item)
    assert (ITEM.id, ITEM.attempt, ITEM.key, ITEM.batch) == (b"i" * 16, 2, "k", "")
    assert ITEM.value == ITEM.contents
    assert not ITEM.is_lost
    ITEM.lease.is_lost = True
    assert ITEM.is_lost
    ITEM.lease.is_lost = False


def test_an_error_is_cut_to_what_a_server_keeps() -> None:
    failed = failure_of(ValueError("ü" * ERROR_BYTES_MAX))

    assert ERROR_BYTES_MAX - 1 <= len(failed.error.encode()) <= ERROR_BYTES_MAX
    assert failed.error.startswith("ValueError: üü")


def test_an_error_may_have_text_that_is_not_unicode_or_no_text_at_all() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failure_of(ValueError("\udc80")).error == "ValueError: \\udc80"
    assert failure_of(Mute()).error == "Mute: (its message failed with RuntimeError)"
    assert failure_of(KeyError()).error == "KeyError"


def test_an_error_that_raises_whatever_when_it_is_asked_is_told_by_its_name() -> None:
    class Exits(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    class Bare(queueber.Retry):
        def __init__(self) -> None:
            """It has no delay."""

    assert failure_of(Exits()).error == "Exits: (its message failed with SystemExit)"
    assert failure_of(Bare()) == Failed("Bare")


def test_the_errors_of_a_group_and_causes_are_told_with_their_lines() -> None:
    async def fail(how: str) -> None:
        raise ValueError(how)

    async def main() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for how in ("first", "second"):
                    group.create_task(fail(how))
        except ExceptionGroup as errors:
            raise RuntimeError("none was sent") from errors

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(main())
    told = failure_of(caught.value).error

    heads = [line for line in told.splitlines() if not line.startswith(" ")]
    assert heads == [
        "RuntimeError: none was sent",
        "caused by ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)",
        "in the group: ValueError: first",
        "in the group: ValueError: second",
    ]
    assert told.count("raise ValueError(how)") == 2


def test_what_was_handled_when_an_error_was_raised_is_told_unless_it_is_suppressed() -> None:
    def failing(*, suppresses: bool) -> None:
        try:
            int("no number")
        except ValueError:
            if suppresses:
                raise RuntimeError("alone") from None
            raise RuntimeError("second")  # noqa: B904  so that it is no cause

    with pytest.raises(RuntimeError) as second:
        failing(suppresses=False)
    with pytest.raises(RuntimeError) as alone:
        failing(suppresses=True)
    told = "\nwhile handling ValueError: invalid literal for int() with base 10: 'no number'\n"
    assert told in failure_of(second.value).error
    assert "while handling" not in failure_of(alone.value).error


def test_only_five_errors_behind_one_are_told_and_circles_end() -> None:
    group = ExceptionGroup("many", [ValueError(number) for number in range(50)])
    group.__cause__ = group

    assert failure_of(group).error.count("ValueError") == 5


def test_retry_carries_reason_and_delay() -> None:
    assert failure_of(queueber.Retry("busy", delay=5)) == Failed("Retry: busy", 5)
    assert failure_of(queueber.Retry()) == Failed("Retry", None)
    with pytest.raises(queueber.InvalidArgument, match="delay: -1 is outside 0 to"):
        queueber.Retry(delay=-1)
