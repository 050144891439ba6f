"""A lease as the faces show it: blocking, and awaited. The two have the same words."""

from queueber.client.arguments import Errors, ItemIds
from queueber.client.leased import Completed, Leased
from queueber.client.waiting import wait_for, wait_for_async
from queueber.model import FailOutcome


class Lease(Leased):
    """Items that are yours for a while. True when there are any.

    A `False` (or `REFUSED`) among the answers means that the lease does not hold the item any more:
    somebody else may have it.
    """

    def extend(self, seconds: float) -> bool:
        """End `seconds` from now instead; False when the lease has ended already."""
        return wait_for(self._calls.outcomes.extend(self.id, seconds))

    def remove(self, ids: ItemIds | None = None) -> list[bool]:
        """Remove items that are done, all of them when none are named: for each, whether it is
        gone."""
        removal = self._removal(ids)
        return wait_for(removal) if removal else []

    def complete(self, results: Completed) -> list[bool]:
        """Remove items that are done and keep their results in the queue's log.

        `results` is a mapping from ids to results, or a list with one for each item of the lease in
        order, or just the result when the lease has one item. For each, whether it was taken.
        """
        ids, listed = self._results(results)
        return wait_for(self._calls.outcomes.complete(ids, listed, self.id)) if ids else []

    def fail(
        self, error: Errors, ids: ItemIds | None = None, *, delay: float | None = None
    ) -> list[FailOutcome]:
        """Say that items failed, all of them when none are named: for each, what becomes of it.

        `error` is the text that is kept of it: one for all, or one for each. An item that may be
        tried again comes back after `delay` seconds, or after the queue's backoff.
        """
        chosen = self._chosen(ids)
        return wait_for(self._calls.outcomes.fail(chosen, error, self.id, delay)) if chosen else []

    def release(self, ids: ItemIds | None = None) -> list[bool]:
        """Give items back untried, all of them when none are named: others may have them now."""
        chosen = self._chosen(ids)
        return wait_for(self._calls.outcomes.release(chosen, self.id)) if chosen else []


class AsyncLease(Leased):
    """Items that are yours for a while. True when there are any. See `Lease`."""

    async def extend(self, seconds: float) -> bool:
        """End `seconds` from now instead; False when the lease has ended already."""
        return await wait_for_async(self._calls.outcomes.extend(self.id, seconds))

    async def remove(self, ids: ItemIds | None = None) -> list[bool]:
        """Remove items that are done, all of them when none are named."""
        removal = self._removal(ids)
        return await wait_for_async(removal) if removal else []

    async def complete(self, results: Completed) -> list[bool]:
        """Remove items that are done and keep their results in the queue's log."""
        ids, listed = self._results(results)
        return (
            await wait_for_async(self._calls.outcomes.complete(ids, listed, self.id)) if ids else []
        )

    async def fail(
        self, error: Errors, ids: ItemIds | None = None, *, delay: float | None = None
    ) -> list[FailOutcome]:
        """Say that items failed, all of them when none are named: for each, what becomes of it."""
        chosen = self._chosen(ids)
        if not chosen:
            return []
        return await wait_for_async(self._calls.outcomes.fail(chosen, error, self.id, delay))

    async def release(self, ids: ItemIds | None = None) -> list[bool]:
        """Give items back untried, all of them when none are named: others may have them now."""
        chosen = self._chosen(ids)
        return await wait_for_async(self._calls.outcomes.release(chosen, self.id)) if chosen else []
