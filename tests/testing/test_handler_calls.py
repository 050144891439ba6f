"""`run_handler`: a handler gets a real item, and a test what a worker would have stored."""

import asyncio
from typing import Any

import pytest
import trio

import queueber
from queueber.errors import InvalidArgument
from queueber.limits import ATTRIBUTES_MAX
from queueber.testing import run_handler
from tests.testing.test_inline_jobs import Calls, app


def upper(item: queueber.WorkItem) -> bytes:
    return item.contents.upper()


def test_the_result_of_a_handler_is_what_would_be_stored() -> None:
    assert run_handler(upper, b"cat") == b"CAT"
    assert run_handler(lambda item: None) == b""
    assert run_handler(f"{__name__}:upper", b"by name") == b"BY NAME"


def test_a_handler_gets_a_whole_item() -> None:
    def tell(item: queueber.WorkItem) -> dict[str, Any]:
        assert item.added_at is not None
        assert len(item.id) == 16
        return {
            "value": item.value, "attempt": item.attempt, "key": item.key, "batch": item.batch,
            "attributes": dict(item.attributes), "source": item.source, "lost": item.is_lost,
        }  # fmt: skip

    told = run_handler(
        tell, b'{"a": 1}', attempt=2, key="k", attributes={"lang": "de"}, batch="monday",
        queue="mails", is_lost=True, serializer=lambda value: repr(value).encode(),
        deserializer="json",
    )  # fmt: skip

    assert told == repr({
        "value": {"a": 1}, "attempt": 2, "key": "k", "batch": "monday",
        "attributes": {"lang": "de"}, "source": "mails", "lost": True,
    }).encode()  # fmt: skip


def test_coroutines_run_in_asyncio_and_trio_and_within_a_loop() -> None:
    async def in_asyncio(item: queueber.WorkItem) -> bytes:
        await asyncio.sleep(0)
        return item.contents

    async def in_trio(item: queueber.WorkItem) -> bytes:
        await trio.lowlevel.checkpoint()
        return item.contents

    async def within() -> bytes:
        return run_handler(in_asyncio, b"inside")

    assert run_handler(in_asyncio, b"a") == b"a"
    assert run_handler(in_trio, b"t", loop="trio") == b"t"
    assert asyncio.run(within()) == b"inside"


def test_what_a_handler_raises_is_raised() -> None:
    def retry(item: queueber.WorkItem) -> None:
        raise queueber.Retry("busy", delay=5)

    calls = Calls()
    with pytest.raises(queueber.Retry, match="busy") as raised:
        run_handler(retry, b"", middleware=[calls])

    assert raised.value.delay == 5
    assert calls.seen == ["before 1", "Retry('busy') 1"]


def test_a_result_that_a_worker_could_not_store_is_an_error() -> None:
    def number(item: queueber.WorkItem) -> int:
        return 1

    with pytest.raises(TypeError, match="return bytes or None"):
        run_handler(number)
    assert run_handler(number, serializer="json") == b"1"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"attempt": 0}, "attempt: 0 is not a number from 1 on"),
        ({"contents": "text"}, "contents: "),
        ({"attributes": {str(n): "" for n in range(ATTRIBUTES_MAX + 1)}}, "attributes: "),
        ({"serializer": "pickle"}, "serializer: 'pickle'"),
        ({"handler": app}, "handler: it is an app"),
        ({"handler": 3}, "handler: 3 is int, not a function"),
    ],
)
def test_what_is_wrong_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        run_handler(**{"handler": upper, **given})
    assert str(refused.value).startswith(told)
