# Generated from async_producer.py by scripts/generate_blocking.py; edit that file instead.
"""A producer: adds that are safe to repeat."""

from concurrent.futures import Future
from typing import Unpack

from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.client.arguments.values import Contents
from queueber.client.calls.adds import AddedIds
from queueber.client.calls.numbered_adds import NumberedAdds
from queueber.client.transport.futures import wait_for


class Producer:
    """Adds that are stored once, however often they are sent.

    Calls are numbered from 1 and stored in order. After a lost connection the client sends a call
    again, and the server recognises it. A program that starts again with the same id and epoch and
    makes the same calls gets the same answers: what was stored before is not stored again.
    """

    def __init__(self, adds: NumberedAdds) -> None:
        self._adds = adds
        self.id = adds.producer_id
        self.epoch = adds.epoch

    def __repr__(self) -> str:
        return f"<Producer {self.id!r} epoch={self.epoch} sequence={self.sequence}>"

    @property
    def sequence(self) -> int:
        """The number of the next call; after a call failed, the number of that call."""
        return self._adds.next_sequence

    def add(
        self, contents: Contents, *, sequence: int | None = None, **options: Unpack[AddOptions]
    ) -> AddedIds:
        """As `Queue.add`. `sequence` is the number of the call, if it is not the next one.

        `Aborted` when another producer uses the id with a greater epoch, when a number was left
        out, when the call has other contents than the one stored under its number, or when a call
        before it failed: repeat that one with its `sequence`. A call whose caller is cancelled is
        sent all the same, because it has its number.
        """
        return wait_for(self.add_soon(contents, sequence=sequence, **options))

    def add_soon(
        self, contents: Contents, *, sequence: int | None = None, **options: Unpack[AddOptions]
    ) -> "Future[AddedIds]":
        """As `add`, but returns at once: several calls may be under way, and are kept in order."""
        return self._adds.add(to_new_items(contents, **options), sequence)
