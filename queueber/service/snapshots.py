"""Snapshots: queues as they were at one moment, kept in memory for those who read them in parts.

They are gone when they are closed, when nobody has read them for a while, when their queue is
deleted, and when the server stops.
"""

import structlog

from queueber.engine.kernel.state import QueueState
from queueber.engine.queue.peek import look
from queueber.engine.queue.results import results_of
from queueber.engine.queue.split import split
from queueber.engine.queue.view import View, take_view
from queueber.errors import NotFound, ResourceExhausted
from queueber.limits import (
    READ_ITEMS_MAX,
    SCAN_ITEMS_MAX,
    SNAPSHOT_KEEP_MS,
    SNAPSHOT_YIELDS_MS,
    SNAPSHOTS_MAX,
)
from queueber.model import ALL_COLUMNS, Column, ItemInfo, ItemState, Results, SnapshotInfo
from queueber.service.core import KeptSnapshot, ServiceCore
from queueber.service.validate.items import check_batch, check_cursor, check_parts

_log = structlog.get_logger("queueber.service")


class Snapshots(ServiceCore):
    def open_snapshot(self, queue: QueueState) -> SnapshotInfo:
        self._check_alive(queue)
        now_ms = self._clock.now_ms()
        self._make_room(now_ms)
        view, snapshot = take_view(self._engine, queue)
        # Never used again: who has one of an earlier run of the server is told that it has ended.
        (snapshot_id,) = self._engine.ids.mint(1, now_ms)
        self._snapshots[snapshot_id] = KeptSnapshot(queue, view, snapshot, now_ms)
        self._loop.call_later(SNAPSHOT_KEEP_MS / 1000, self._expire, snapshot_id)
        _log.debug("snapshot_opened", queue=queue.name, snapshot=snapshot_id)
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
        queue: QueueState,
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
        room = self.limits.answer_bytes_max
        return look(view, state, after, limit, room, before=before, batch=batch, without=without)

    def split_snapshot(
        self, queue: QueueState, snapshot_id: bytes, state: ItemState, parts: int
    ) -> list[bytes]:
        """Cursors that cut the items of a state into at most `parts` ranges."""
        view = self._view(queue, snapshot_id)
        check_parts(parts)
        return split(view, state, parts)

    def read_snapshot(
        self,
        queue: QueueState,
        snapshot_id: bytes,
        *,
        offset: int,
        limit: int,
        before: int = 0,
        batch: str = "",
        without: frozenset[Column] = ALL_COLUMNS,
    ) -> Results:
        """Results that there were, also those that have been deleted since. Never waits."""
        view = self._view(queue, snapshot_id)
        if batch:
            check_batch(batch)
        limit = min(limit, READ_ITEMS_MAX) or READ_ITEMS_MAX
        room = self.limits.answer_bytes_max
        return results_of(view, offset, limit, room, before=before, batch=batch, without=without)

    def close_snapshot(self, queue: QueueState, snapshot_id: bytes) -> bool:
        """False when it has ended already."""
        kept = self._snapshots.get(snapshot_id)
        if kept is None or kept.queue is not queue:
            return False
        self._end_snapshot(snapshot_id, "closed")
        return True

    def _view(self, queue: QueueState, snapshot_id: bytes) -> View:
        self._check_alive(queue)
        kept = self._snapshots.get(snapshot_id)
        if kept is None or kept.queue is not queue:
            raise NotFound(
                "snapshot: the snapshot has ended, or was never one of this queue; one that nobody "
                f"reads ends after {SNAPSHOT_KEEP_MS // 1000} s, and all end with the server; open "
                "another and read again"
            )
        kept.used_at_ms = self._clock.now_ms()
        return kept.view

    def _make_room(self, now_ms: int) -> None:
        if len(self._snapshots) < SNAPSHOTS_MAX:
            return
        oldest = min(self._snapshots, key=lambda each: self._snapshots[each].used_at_ms)
        if self._snapshots[oldest].used_at_ms + SNAPSHOT_YIELDS_MS > now_ms:
            raise ResourceExhausted(
                f"{SNAPSHOTS_MAX} snapshots are being read, the limit; close one, or try again "
                f"when one was not read for {SNAPSHOT_YIELDS_MS // 1000} s"
            )
        self._end_snapshot(oldest, "made room for another")

    def _expire(self, snapshot_id: bytes) -> None:
        kept = self._snapshots.get(snapshot_id)
        if kept is None:
            return
        left_ms = kept.used_at_ms + SNAPSHOT_KEEP_MS - self._clock.now_ms()
        if left_ms > 0:
            self._loop.call_later(left_ms / 1000, self._expire, snapshot_id)
        else:
            self._end_snapshot(snapshot_id, "not read any more")

    def _end_snapshots(self, queue: QueueState | None = None) -> None:
        """Those of a queue, or all."""
        for snapshot_id, kept in list(self._snapshots.items()):
            if queue is None or kept.queue is queue:
                self._end_snapshot(snapshot_id, "queue deleted" if queue else "server stops")

    def _end_snapshot(self, snapshot_id: bytes, reason: str) -> None:
        kept = self._snapshots.pop(snapshot_id)
        kept.snapshot.close()
        _log.debug("snapshot_ended", queue=kept.queue.name, snapshot=snapshot_id, reason=reason)
