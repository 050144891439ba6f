"""Finding one item, whatever became of it."""

import os
import re

import pytest

import queueber
from queueber import AttemptEnd, ItemState


def test_item_is_found_in_every_state_with_what_happened_to_it(client: queueber.Client) -> None:
    client.create_queue("found", attempts_max=2, backoff=[0])
    queue = client.queue("found")
    [item_id] = queue.add(b"work", key="order-17", batch="night", attributes={"a": "1"})
    ready = queue.find(item_id)
    lease = queue.poll()
    leased = queue.find(key="order-17")
    lease.release()
    queue.poll().fail("first", delay=60)
    delayed = queue.find(item_id.hex())
    queue.cancel(item_id)

    assert ready is not None
    assert (ready.state, ready.attempts, ready.lease) == (ItemState.READY, [], None)
    assert (ready.key, ready.batch, ready.attributes) == ("order-17", "night", {"a": "1"})
    assert ready.item is not None
    assert (ready.item.contents, ready.item.deliveries) == (b"work", 0)
    assert leased is not None
    assert (leased.id, leased.state) == (item_id, ItemState.LEASED)
    assert leased.lease is not None
    assert leased.lease.lease_id == lease.id
    held_by = rf".+ \(127\.0\.0\.1:\d+, process {os.getpid()} on .+\)"
    assert re.fullmatch(held_by, leased.lease.holder)
    assert delayed is not None
    assert delayed.state is ItemState.DELAYED
    assert [(each.end, each.error) for each in delayed.attempts] == [(AttemptEnd.FAILED, "first")]
    assert delayed.item is not None
    assert (delayed.item.attempts, delayed.item.deliveries) == (1, 2)
    assert queue.find(item_id) is None
    assert queue.find(key="order-17") is None
    assert queue.find(key="never used") is None


def test_item_that_is_done_is_found_with_its_result_among_many(
    client: queueber.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = client.queue("found-done")
    ids = [*queue.add([b"x"] * 6000), *queue.add([b"x"] * 6000)]
    while lease := queue.poll(500):
        lease.complete([item.id for item in lease])

    found = queue.find(ids[-1])

    assert found is not None
    assert (found.state, found.item, found.is_done) == (None, None, True)
    assert found.result is not None
    assert (found.result.result, found.result.offset) == (ids[-1], 11_999)
    monkeypatch.setattr("queueber.client.calls.find.FIND_CALLS_MAX", 1)
    with pytest.raises(queueber.OutOfRange, match=r"not among those before offset 10\d\d\d; read"):
        queue.find(ids[-1])


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({}, "id: give an id or a key, and not both"),
        ({"id": bytes(16), "key": "k"}, "id: give an id or a key, and not both"),
        ({"id": b"short"}, "id: "),
        ({"key": ""}, "key: "),
        ({"key": "k" * 10_000}, "key: it has 10000 bytes; the limit is"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    queue: queueber.Queue, asked: dict[str, object], match: str
) -> None:
    with pytest.raises(queueber.InvalidArgument, match=match):
        queue.find(**asked)  # type: ignore[arg-type]


def test_peek_shows_the_items_that_match_a_condition(client: queueber.Client) -> None:
    client.create_queue("peek-where", attempts_max=1)
    queue = client.queue("peek-where")
    queue.add([b"x"] * 1200)
    [odd] = queue.add(b'{"total": 7}', attributes={"region": "eu"})

    page = queue.peek(where="total > 5 AND attributes.region = 'eu'")
    found = list(queue.peek_all(where="total > 5 AND attributes.region = 'eu'"))

    assert page.items == []
    assert page.next
    assert [item.id for item in found] == [odd]
    assert found[0].contents == b'{"total": 7}'
    with pytest.raises(queueber.InvalidArgument, match=r"where: item\.nothing is no field"):
        queue.peek(where="item.nothing = 1")
    with pytest.raises(queueber.InvalidArgument, match="where: "):
        queue.peek(where=5)  # type: ignore[arg-type]
