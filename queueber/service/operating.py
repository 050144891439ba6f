"""Operating: looking at items, taking them out, bringing dead letters back, pausing."""

from collections.abc import Awaitable, Sequence

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.state import QueueState
from queueber.engine.queue.cancel import cancel
from queueber.engine.queue.pause import pause, resume
from queueber.engine.queue.peek import peek
from queueber.engine.queue.purge import purge
from queueber.engine.queue.redrive import redrive, redrive_first
from queueber.limits import PEEK_ITEMS_MAX, PURGE_ITEMS_MAX
from queueber.model import ItemInfo, ItemState
from queueber.service.polls import Polls
from queueber.service.validate.arguments import check_ids, check_many
from queueber.service.validate.items import check_cursor, check_pause_ms

_log = structlog.get_logger("queueber.service")


class Operating(Polls):
    def peek(
        self, queue: QueueState, state: ItemState, after: bytes, limit: int
    ) -> tuple[list[ItemInfo], bytes]:
        """A page of items, and where the next one begins; empty when there is none."""
        self._check_alive(queue)
        check_cursor("after", after)
        limit = min(limit, PEEK_ITEMS_MAX) or PEEK_ITEMS_MAX
        room = self.limits.answer_bytes_max
        return peek(self._engine, queue, state, after, limit, room)

    def cancel(self, queue: QueueState, ids: Sequence[bytes]) -> Awaitable[list[bool]]:
        self._check_alive(queue)
        check_many("ids", len(ids))
        check_ids("ids", ids)
        cancelled = cancel(self._engine, queue, ids, self._clock.now_ms())
        _log.info("cancelled", queue=queue.name, items=sum(cancelled))
        self._settle(queue)
        return self._durable(cancelled)

    def purge(self, queue: QueueState, state: ItemState, limit: int) -> Awaitable[tuple[int, bool]]:
        """A slice of the items of a state; how many went, and whether there are more."""
        self._check_alive(queue)
        limit = min(limit, PURGE_ITEMS_MAX) or PURGE_ITEMS_MAX
        purged, more = purge(self._engine, queue, state, limit, self._clock.now_ms())
        _log.info("purged", queue=queue.name, state=state.value, items=purged)
        self._settle(queue)
        return self._durable((purged, more))

    def redrive(
        self, queue: QueueState, ids: Sequence[bytes], limit: int
    ) -> Awaitable[tuple[int, bool]]:
        """Dead letters by id, or a slice of all; how many are ready, and whether there are more."""
        self._check_alive(queue)
        now_ms = self._clock.now_ms()
        if ids:
            check_many("ids", len(ids))
            check_ids("ids", ids)
            redriven, more = redrive(self._engine, queue, ids, now_ms), False
        else:
            limit = min(limit, PURGE_ITEMS_MAX) or PURGE_ITEMS_MAX
            redriven, more = redrive_first(self._engine, queue, limit, now_ms)
        _log.info("redriven", queue=queue.name, items=redriven)
        self._settle(queue)
        return self._durable((redriven, more))

    def pause(self, queue: QueueState, for_ms: int) -> Awaitable[None]:
        """Serve no poll for that long; 0: until resumed."""
        self._check_alive(queue)
        check_pause_ms(for_ms)
        pause(self._engine, queue, self._clock.now_ms() + for_ms if for_ms else NEVER_MS)
        _log.info("paused", queue=queue.name, for_ms=for_ms)
        self._tell_sweeper()
        return self._durable(None)

    def resume(self, queue: QueueState) -> Awaitable[None]:
        self._check_alive(queue)
        resume(self._engine, queue)
        _log.info("resumed", queue=queue.name)
        self._settle(queue)
        return self._durable(None)
