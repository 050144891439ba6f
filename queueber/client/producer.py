"""A producer as the faces show it: blocking, and awaited. Its adds may be repeated safely."""

from concurrent.futures import Future
from typing import Unpack

from queueber.client.adding import AddedIds
from queueber.client.arguments import Contents
from queueber.client.new_items import AddOptions, to_new_items
from queueber.client.numbering import NumberedAdds
from queueber.client.waiting import wait_for, wait_for_async


class _Producing:
    def __init__(self, adds: NumberedAdds) -> None:
        self._adds = adds

    @property
    def id(self) -> str:
        return self._adds.producer_id

    @property
    def epoch(self) -> int:
        return self._adds.epoch

    @property
    def sequence(self) -> int:
        """The number of the next call; after one that failed, the number that failed."""
        return self._adds.next_sequence


class Producer(_Producing):
    """Adds that are stored once, however often they are sent.

    Calls are numbered from 1 and stored in order. A lost connection does not leave you in doubt:
    the call is sent again, and the server knows it. So is a program that begins again with the same
    id and epoch and makes the same calls: those that were stored are answered as the first time.
    """

    def add(
        self, contents: Contents, *, sequence: int | None = None, **options: Unpack[AddOptions]
    ) -> AddedIds:
        """As `Queue.add`. `sequence` is the call's number when it is not to be the next one.

        `Aborted` when another producer has the id with a greater epoch, when numbers were left out,
        or when a call before it failed: repeat that one with its `sequence`.
        """
        return wait_for(self.add_soon(contents, sequence=sequence, **options))

    def add_soon(
        self, contents: Contents, *, sequence: int | None = None, **options: Unpack[AddOptions]
    ) -> "Future[AddedIds]":
        """As `add`, but returns at once: several calls may be under way, and stay in order."""
        return self._adds.add(to_new_items(contents, **options), sequence)


class AsyncProducer(_Producing):
    """Adds that are stored once, however often they are sent. See `Producer`."""

    async def add(
        self, contents: Contents, *, sequence: int | None = None, **options: Unpack[AddOptions]
    ) -> AddedIds:
        """As `AsyncQueue.add`. `sequence` is the call's number when it is not to be the next one.

        Several tasks may call it: calls are numbered in the order in which they begin. A call that
        is cancelled is sent all the same, for it has its number.
        """
        return await wait_for_async(self._adds.add(to_new_items(contents, **options), sequence))
