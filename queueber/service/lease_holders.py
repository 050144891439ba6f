"""Who holds which lease, for operators.

The store has leases and when they expire. Who polled is known in memory only: of every lease until
it ends, as long as a server has no more of them at once than are remembered. After a restart
it is known again of those that are extended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from queueber.engine.queue.extend import extend
from queueber.engine.queue.queue_state import QueueTx
from queueber.limits import HOLDERS_REMEMBERED, LEASES_LIST_MAX
from queueber.model import LeaseInfo
from queueber.service.session import QueueHandle
from queueber.service.validate.arguments import check_ids


class LeaseHolders:
    def __init__(self) -> None:
        # Two generations: dropping the older one is cheaper than finding the oldest of many, and
        # every poll passes here. Leases leave when they end, so there seldom is an older one.
        self._newer: dict[bytes, str] = {}
        self._older: dict[bytes, str] = {}

    def remember(self, lease_ids: Iterable[bytes], holder: str) -> None:
        newer = self._newer
        for lease_id in lease_ids:
            newer[lease_id] = holder
        if len(newer) >= HOLDERS_REMEMBERED:
            self._older, self._newer = newer, {}

    def ended(self, lease_ids: Iterable[bytes]) -> None:
        """Forget who held these."""
        newer, older = self._newer, self._older
        for lease_id in lease_ids:
            if newer.pop(lease_id, None) is None and older:
                older.pop(lease_id, None)

    @property
    def count(self) -> int:
        """Of how many leases the holder is known."""
        return len(self._newer) + len(self._older)

    def extend_leases(
        self,
        tx: QueueTx,
        lease_ids: Sequence[bytes],
        leases_ms: Sequence[int],
        holders: Sequence[str],
    ) -> list[bool]:
        """As the engine's `extend`. A lease that nobody is known to hold is that of who extends it,
        as after a restart; somebody else may extend one, too."""
        extended = extend(tx, lease_ids, leases_ms)
        for lease_id, holder, is_alive in zip(lease_ids, holders, extended, strict=True):
            if is_alive and lease_id not in self._newer:
                known = self._older.pop(lease_id, holder)
                tx.after_write(self.remember, (lease_id,), known)
        return extended

    def holder(self, lease_id: bytes) -> str:
        """Who polled; empty if that is not known."""
        return self._newer.get(lease_id) or self._older.get(lease_id, "")

    def list_leases(
        self, queue: QueueHandle, after: bytes, limit: int
    ) -> tuple[list[LeaseInfo], bool]:
        """Leases behind the lease `after`, oldest first, and whether there are more."""
        queue.check_alive()
        if after:
            check_ids("after", [after])
        limit = min(limit, LEASES_LIST_MAX) or LEASES_LIST_MAX
        found, more = queue.state.leases.page(after, limit)
        return [replace(each, holder=self.holder(each.lease_id)) for each in found], more
