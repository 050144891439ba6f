"""Snapshots: queues as they were at one moment, kept in memory for those who read them in parts.

They end when they are closed, when nobody has read them for a while, when their queue is deleted,
and when the server stops.
"""

from dataclasses import dataclass

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Snapshot
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import QueueState, View, take_view
from queueber.engine.queue.results import results_of
from queueber.engine.queue.split import split
from queueber.errors import NotFound, ResourceExhausted
from queueber.limits import (
    READ_ITEMS_MAX,
    SCAN_ITEMS_MAX,
    SNAPSHOT_KEEP_MS,
    SNAPSHOT_YIELDS_MS,
    SNAPSHOTS_MAX,
)
from queueber.model import ALL_COLUMNS, Column, ItemInfo, ItemState, Results, SnapshotInfo
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.validate.items import check_batch, check_cursor, check_parts

_log = structlog.get_logger("queueber.service")


@dataclass(slots=True)
class _Kept:
    queue: QueueState
    view: View
    snapshot: Snapshot
    used_at_ms: int


class Snapshots:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._kept: dict[bytes, _Kept] = {}
        self.due_ms = NEVER_MS
        """When one may have to end because nobody reads it."""

    def open_snapshot(self, queue: QueueHandle) -> SnapshotInfo:
        queue.check_alive()
        shell, state = self._shell, queue.state
        now_ms = shell.clock.now_ms()
        self._check_count(now_ms)
        view, snapshot = take_view(shell.engine.store, state)
        # Never used again: an id of an earlier run of the server is one that has ended.
        (snapshot_id,) = shell.engine.ids.mint(1, now_ms)
        self._kept[snapshot_id] = _Kept(state, view, snapshot, now_ms)
        self.due_ms = min(self.due_ms, now_ms + SNAPSHOT_KEEP_MS)
        shell.wake_sweeper_for(self.due_ms)
        _log.debug("snapshot_opened", queue=state.name, snapshot=snapshot_id)
        counters, head = view.counters, view.results.head
        return SnapshotInfo(
            id=snapshot_id,
            taken_at_ms=now_ms,
            expires_at_ms=now_ms + SNAPSHOT_KEEP_MS,
            first_offset=head.first_offset,
            next_offset=head.next_offset,
            ready=counters.ready,
            delayed=counters.delayed,
            leased=counters.leased,
            dead=counters.dead,
        )

    def scan_snapshot(
        self,
        queue: QueueHandle,
        snapshot_id: bytes,
        state: ItemState,
        *,
        after: bytes = b"",
        before: bytes = b"",
        limit: int = 0,
        batch: str = "",
        without: frozenset[Column] = ALL_COLUMNS,
    ) -> tuple[list[ItemInfo], bytes]:
        """A page of items as they stood, and where the next one begins; empty: there is none.

        A page of one batch may be empty though there is a next one.
        """
        view = self._view(queue, snapshot_id)
        check_cursor("after", after)
        check_cursor("before", before)
        if batch:
            check_batch(batch)
        limit = min(limit, SCAN_ITEMS_MAX) or SCAN_ITEMS_MAX
        bytes_max = self._shell.limits.answer_bytes_max
        return look(
            view, state, after, limit, bytes_max, before=before, batch=batch, without=without
        )

    def split_snapshot(
        self, queue: QueueHandle, snapshot_id: bytes, state: ItemState, parts: int
    ) -> list[bytes]:
        """Cursors that cut the items of a state into at most `parts` ranges."""
        view = self._view(queue, snapshot_id)
        check_parts(parts)
        return split(view, state, parts)

    def read_snapshot(
        self,
        queue: QueueHandle,
        snapshot_id: bytes,
        *,
        offset: int,
        limit: int,
        before: int = 0,
        batch: str = "",
        without: frozenset[Column] = ALL_COLUMNS,
    ) -> Results:
        """Results as they stood, also those that have been deleted since. Never waits."""
        view = self._view(queue, snapshot_id)
        if batch:
            check_batch(batch)
        limit = min(limit, READ_ITEMS_MAX) or READ_ITEMS_MAX
        bytes_max = self._shell.limits.answer_bytes_max
        return results_of(
            view, offset, limit, bytes_max, before=before, batch=batch, without=without
        )

    def close_snapshot(self, queue: QueueHandle, snapshot_id: bytes) -> bool:
        """False when it has ended already."""
        kept = self._kept.get(snapshot_id)
        if kept is None or kept.queue is not queue.state:
            return False
        self._end(snapshot_id, "closed")
        return True

    def expire_snapshots(self, now_ms: int) -> int:
        """End those that nobody has read for a while; returns when to look again."""
        if now_ms >= self.due_ms:
            for snapshot_id, kept in list(self._kept.items()):
                if now_ms >= kept.used_at_ms + SNAPSHOT_KEEP_MS:
                    self._end(snapshot_id, "not read any more")
            used_at_ms = [kept.used_at_ms for kept in self._kept.values()]
            self.due_ms = min(used_at_ms) + SNAPSHOT_KEEP_MS if used_at_ms else NEVER_MS
        return self.due_ms

    def queue_deleted(self, queue: QueueState) -> None:
        for snapshot_id, kept in list(self._kept.items()):
            if kept.queue is queue:
                self._end(snapshot_id, "queue deleted")

    def server_stops(self) -> None:
        for snapshot_id in list(self._kept):
            self._end(snapshot_id, "server stops")

    def _view(self, queue: QueueHandle, snapshot_id: bytes) -> View:
        queue.check_alive()
        kept = self._kept.get(snapshot_id)
        if kept is None or kept.queue is not queue.state:
            raise NotFound(
                "snapshot: the snapshot has ended, or was never one of this queue; one that nobody "
                f"reads ends after {SNAPSHOT_KEEP_MS // 1000} s, and all end with the server; open "
                "another and read again"
            )
        kept.used_at_ms = self._shell.clock.now_ms()
        return kept.view

    def _check_count(self, now_ms: int) -> None:
        """End the one that was not read for longest if there are too many, or refuse another."""
        if len(self._kept) < SNAPSHOTS_MAX:
            return
        oldest = min(self._kept, key=lambda each: self._kept[each].used_at_ms)
        if self._kept[oldest].used_at_ms + SNAPSHOT_YIELDS_MS > now_ms:
            raise ResourceExhausted(
                f"{SNAPSHOTS_MAX} snapshots are being read, the limit; close one, or try again "
                f"when one was not read for {SNAPSHOT_YIELDS_MS // 1000} s"
            )
        self._end(oldest, "too many snapshots")

    def _end(self, snapshot_id: bytes, reason: str) -> None:
        kept = self._kept.pop(snapshot_id)
        kept.snapshot.close()
        _log.debug("snapshot_ended", queue=kept.queue.name, snapshot=snapshot_id, reason=reason)
