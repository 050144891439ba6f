"""One item by its id or key, in whatever state, and what happened to it."""

from typing import Literal

import msgspec

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues import fields
from queueber.gateway.queues.items import PeekedItem, shown_item
from queueber.gateway.queues.lists import LeaseAnswer, shown_lease
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.queues.results import ResultAnswer, shown_result
from queueber.gateway.routes import NoQuery, Route
from queueber.ids import made_at_ms
from queueber.model import FoundItem


class AttemptAnswer(msgspec.Struct):
    at_ms: int
    end: Literal["failed", "expired", "disconnected"] | None
    """Its holder said that it failed, its lease ran out, or its connection ended; null if that is
    not known any more."""
    error: str


class ItemAnswer(msgspec.Struct):
    id: fields.Id
    state: Literal["ready", "delayed", "leased", "dead", "done"]
    added_at_ms: int
    item: PeekedItem | None
    """Null if it is done."""
    attempts: list[AttemptAnswer]
    """Those that failed, oldest first."""
    lease: LeaseAnswer | None
    """Who holds it, if it is leased."""
    result: ResultAnswer | None
    """If it is done."""


async def find_by_id(call: Call[NoQuery, None]) -> ItemAnswer:
    await call.take_turn()
    item_id = call.names["id"]
    found = await present_queue(call).find(item_id)
    if found is None:
        raise problem_of(
            errors.NotFound(f"item {item_id} is not in the queue, and has no result there")
        )
    return _shown(found)


async def find_by_key(call: Call[NoQuery, None]) -> ItemAnswer:
    await call.take_turn()
    key = call.names["key"]
    found = await present_queue(call).find(key=key)
    if found is None:
        raise problem_of(
            errors.NotFound(f"the queue has no item with the key {key!r}, and remembers none")
        )
    return _shown(found)


def _shown(found: FoundItem) -> ItemAnswer:
    return ItemAnswer(
        found.id.hex(),
        "done" if found.state is None else found.state.value,
        made_at_ms(found.id),
        None if found.item is None else shown_item(found.item),
        [
            AttemptAnswer(each.at_ms, None if each.end is None else each.end.value, each.error)
            for each in found.attempts
        ],
        None if found.lease is None else shown_lease(found.lease),
        None if found.result is None else shown_result(found.result),
    )


ROUTES = (
    Route(
        "GET", "/v1/queues/{queue}/items/{id}", find_by_id, "Find an item, whatever its state",
        "items", description="With each attempt that failed, who holds it, or its result.",
        answer=ItemAnswer, errors=(errors.NotFound, errors.OutOfRange),
    ),
    Route(
        "GET", "/v1/queues/{queue}/keys/{key}", find_by_key,
        "Find the item that was added with a key", "items",
        description="A key finds its item for the dedup window of the queue, and then as long as "
        "the item is in the queue. A key in a path is percent-encoded.",
        answer=ItemAnswer, errors=(errors.NotFound, errors.OutOfRange),
    ),
)  # fmt: skip
