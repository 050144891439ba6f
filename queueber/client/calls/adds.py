"""Adds. Concurrent adds of the same batch are sent as one call."""

from concurrent.futures import Future
from functools import partial
from typing import Any, Unpack

from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.client.arguments.values import Contents
from queueber.client.calls.features import check_new_items
from queueber.client.calls.numbered import NumberedCalls
from queueber.client.calls.sizes import columns_bytes, options_bytes
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link
from queueber.client.transport.remote_queue import Batcher, Operation, RemoteQueue, filled
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import NO_OPTIONS, Added, NewItems
from queueber.model.joined import joined_columns
from queueber.wire.items import read_added, write_add

_PACKED_ITEMS_MIN = 32
"""Fewer contents cost less in a list, here and on the server."""


class AddedIds(list[bytes]):
    """The ids of added items in order: a list with two more attributes."""

    duplicates: tuple[bool, ...] = ()
    """For each item, whether its key was there already: it was not stored, and the id is that of
    the first item with this key. Empty when there was no duplicate."""
    is_repeat: bool = False
    """Whether the server had stored this call of the producer before; the ids are the same."""


class AddCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue
        self.batcher: Batcher[NewItems] = Batcher(queue.connection, self._send)

    def add(self, contents: Contents, **options: Unpack[AddOptions]) -> "Future[AddedIds]":
        items = to_new_items(contents, **options)
        # Adds with an origin are not batched: the rows of one call are consecutive. Nor are those
        # that wait: all items of a call wait for the same.
        is_alone = items.origin is not None or items.after or items.after_batch
        group = object() if is_alone else items.batch
        return self.batcher.submit(items, len(items.contents), size=size_of(items), group=group)

    async def _send(self, operations: list[Operation[NewItems]]) -> None:
        size = sum(operation.size for operation in operations)
        items = joined([operation.payload for operation in operations])
        self._queue.check_size("contents", len(items.contents), size)
        send = filled("add", partial(write_items, items, self._queue.connection))
        response = await self._queue.call(send, is_repeatable=False)
        added = read_added(response.resp)
        start = 0
        for operation in operations:
            end = start + operation.parts
            operation.answer(ids_of(added, start, end))
            start = end


class NumberedAdds(NumberedCalls[NewItems, AddedIds]):
    """The adds of one producer."""

    def _size(self, call: NewItems) -> tuple[int, int]:
        return len(call.contents), size_of(call)

    async def _send(self, link: Link, call: NewItems) -> AddedIds:
        count, size = self._size(call)
        self._to.check_size("contents", count, size)
        send = filled("add", partial(write_items, call, link))
        answer = self._connection.answer(link, send, is_repeatable=False, of=self._to.ref)
        return ids_of(read_added((await answer).resp), 0, count)


def write_items(items: NewItems, to: Connection | Link, request: Any) -> None:
    """Write an add; packed if there are many items and the server reads that."""
    check_new_items(to.server, items)
    packed = to.server.reads_packed and len(items.contents) >= _PACKED_ITEMS_MIN
    write_add(request, items, packed=packed)


def ids_of(added: Added, start: int, end: int) -> AddedIds:
    """The part of an answer that belongs to one operation."""
    ids = AddedIds(added.ids[start:end])
    if added.duplicates and any(duplicates := added.duplicates[start:end]):
        ids.duplicates = tuple(duplicates)
    if added.is_repeat:
        ids.is_repeat = True
    return ids


def size_of(items: NewItems) -> int:
    """The bytes of contents, keys, attributes and options."""
    size = columns_bytes(items.contents, [items.keys], items.attributes)
    return size + options_bytes(items.options) if items.options else size


def joined(adds: list[NewItems]) -> NewItems:
    """Several adds of one batch as one. None of them has a producer."""
    if len(adds) == 1:
        return adds[0]

    def column(name: str, missing: object) -> list[Any]:
        return joined_columns([(getattr(each, name), len(each.contents)) for each in adds], missing)

    contents = [each for items in adds for each in items.contents]
    if not any(
        each.delays_ms or each.priorities or each.keys or each.attributes or each.options
        for each in adds
    ):
        return NewItems(contents, batch=adds[0].batch)
    return NewItems(
        contents,
        column("delays_ms", 0),
        column("priorities", PRIORITY_DEFAULT),
        column("keys", ""),
        column("attributes", {}),
        adds[0].batch,
        options=column("options", NO_OPTIONS),
    )
