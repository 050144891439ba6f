"""What a client refuses to ask of a server that is too old to know it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import queueber
from queueber.client.arguments.new_items import AddOptions
from queueber.model import Feature


@pytest.fixture
def older(client: queueber.Client) -> Iterator[queueber.Queue]:
    """A queue of a server that names no features when the client connects."""
    queue = client.queue("of-a-server-without-features")
    connection = queue._calls._queue.connection
    told, link = connection.server, connection._link
    assert link is not None
    assert set(told.features) == set(Feature)
    link.server = connection.server = replace(told, version="0.1", features=())
    yield queue
    link.server = connection.server = told


ASKED: list[tuple[str, Callable[[queueber.Queue], Any]]] = [
    ("attempts, backoff, timeout, expires", lambda queue: queue.add(b"x", attempts=3)),
    ("attempts, backoff, timeout, expires", lambda queue: queue.add([b"x"] * 40, expires=60)),
    ("after, after_batch", lambda queue: queue.add(b"x", after=[bytes(16)])),
    ("after, after_batch", lambda queue: queue.add(b"x", after_batch="b")),
    ("attempts, backoff, timeout, expires", lambda q: q.producer("p", 1).add(b"x", timeout=5)),
    ("where", lambda queue: queue.peek(where="item.priority = 9")),
    ("where", lambda queue: list(queue.peek_all(where="item.priority = 9"))),
]


@pytest.mark.parametrize(("named", "ask"), ASKED)
def test_what_an_older_server_would_ignore_is_refused(
    older: queueber.Queue, named: str, ask: Callable[[queueber.Queue], Any]
) -> None:
    before = older.stats().added_total

    with pytest.raises(queueber.FailedPrecondition) as refused:
        ask(older)

    assert str(refused.value) == (
        f"{named}: the server has version 0.1, which does not know this and would ignore it; "
        "upgrade the server"
    )
    assert older.stats().added_total == before


def test_steps_that_an_older_server_would_ignore_are_refused(
    older: queueber.Queue, client: queueber.Client
) -> None:
    before = older.stats().added_total

    with (
        pytest.raises(queueber.FailedPrecondition, match="would ignore it"),
        client.together() as together,
    ):
        together.add(older.name, b"x", attempts=3)

    assert older.stats().added_total == before


def test_plain_calls_of_an_older_server_work(older: queueber.Queue) -> None:
    older.add([b"x"] * 40, priority=3, key=[str(n) for n in range(40)], batch="plain")

    assert len(older.peek().items) == 40


def test_a_plain_add_that_shares_its_call_with_a_refused_one_is_stored(
    older: queueber.Queue, client: queueber.Client
) -> None:
    calls = older._calls
    before = older.stats().added_total
    options: list[AddOptions] = [{}, {"attempts": 3}, {}, {"expires": 5}, {}]
    futures = [calls.adds.add(b"x", **each) for each in options]

    refused = [isinstance(each.exception(timeout=30), queueber.QueueberError) for each in futures]

    assert refused == [False, True, False, True, False]
    assert older.stats().added_total == before + 3
