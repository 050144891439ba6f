"""Who holds which lease, for operators.

The store has leases and when they expire. Who polled is known in memory only, of the last leases,
and not after a restart.
"""

from collections.abc import Iterable
from dataclasses import replace

from queueber.limits import HOLDERS_REMEMBERED, LEASES_LIST_MAX
from queueber.model import LeaseInfo
from queueber.service.session import QueueHandle
from queueber.service.validate.arguments import check_ids


class LeaseHolders:
    def __init__(self) -> None:
        # Two generations: dropping the older one is cheaper than finding the oldest of many, and
        # every poll passes here.
        self._newer: dict[bytes, str] = {}
        self._older: dict[bytes, str] = {}

    def remember(self, lease_ids: Iterable[bytes], holder: str) -> None:
        newer = self._newer
        for lease_id in lease_ids:
            newer[lease_id] = holder
        if len(newer) >= HOLDERS_REMEMBERED:
            self._older, self._newer = newer, {}

    def holder(self, lease_id: bytes) -> str:
        """Who polled; empty if that was too long ago to remember."""
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
