# Generated from async_lease.py by scripts/generate_blocking.py; edit that file instead.
"""A lease: items that one consumer holds for a while."""

from collections.abc import Mapping
from typing import Any

from queueber.client.api.item import LeasedItems
from queueber.client.arguments.values import CompletedResults, Errors, ItemIds, Seconds, to_ids
from queueber.client.transport.futures import wait_for
from queueber.model import FailOutcome


class Lease(LeasedItems):
    """Items that are yours until the lease expires. False when the poll found none.

    Iterate over it to get the items. Each call about items answers for each item: `False` (or
    `FailOutcome.REFUSED`) means that the lease does not hold the item any more, so somebody else
    may have it. `ids` are bytes, hexadecimal text or items: one, or several, or all of the lease
    when none are named.
    """

    def extend(self, seconds: Seconds) -> bool:
        """Let the lease expire `seconds` from now instead; False when it has ended already."""
        return wait_for(self._calls.extend(seconds, self.id))

    def remove(self, ids: ItemIds | None = None) -> list[bool]:
        """Delete items that are done: for each, whether it is gone."""
        if ids is None:
            held = self._polled.ids
            return wait_for(self._calls.remove_whole(held, self.id)) if held else []
        chosen = self._chosen(ids)
        return wait_for(self._calls.remove(chosen, self.id)) if chosen else []

    def complete(self, results: Mapping[Any, bytes] | CompletedResults) -> list[bool]:
        """Delete items that are done and keep their results: for each, whether it was taken.

        `results` is a mapping from ids or items to results, or a list with one for each item of the
        lease in order, or just the result when the lease has one item.
        """
        if isinstance(results, Mapping):
            ids, listed = to_ids("ids", results), list(results.values())
            return wait_for(self._calls.complete(ids, listed, self.id)) if ids else []
        held = self._polled.ids
        if not held:
            return []
        return wait_for(self._calls.complete_whole(held, results, self.id))

    def fail(
        self, error: Errors, *, ids: ItemIds | None = None, delay: Seconds | None = None
    ) -> list[FailOutcome]:
        """Report that items failed: for each, what becomes of it.

        `error` is text or an exception, one for all items or one for each. It is kept with the
        item, cut to 16 KiB. An item that may be tried again is delayed by `delay`, or by the
        queue's backoff.
        """
        chosen = self._chosen(ids)
        if not chosen:
            return []
        return wait_for(self._calls.fail(chosen, error, self.id, delay))

    def release(self, ids: ItemIds | None = None) -> list[bool]:
        """Give items back without trying them: others may lease them now."""
        chosen = self._chosen(ids)
        return wait_for(self._calls.release(chosen, self.id)) if chosen else []
