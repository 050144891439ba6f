"""Limits so low that a short history reaches them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

_LOW = {
    "queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES": 4,
    "queueber.engine.queue.recent_blocks.RECENT_QUEUE_BYTES_MAX": 1500,
    "queueber.db.records.blocks.BLOCK_ITEMS_MAX": 3,
    "queueber.db.records.blocks.BLOCK_WASTE_FACTOR": 1,
    "queueber.engine.queue.poll.OLDEST_FIRST_EVERY": 3,
    "queueber.engine.queue.dead_letters.DEAD_READ_REST_MS": 20_000,
    "queueber.engine.queue.isolation.QUARANTINE_PATIENCE_MS": 30,
    "queueber.engine.records.producers.PRODUCER_ANSWERS_KEPT": 2,
    "queueber.engine.records.dedup_keys.KEPT_KEYS_LOOK_MS": 30,
    "queueber.engine.integrity.records.PRODUCER_ANSWERS_KEPT": 2,
    "queueber.service.bound_leases.SWEEP_SLICE_ITEMS": 2,
    "queueber.engine.topics.compaction.COMPACT_AFTER_MS": 20,
    "queueber.engine.topics.topics.TOPICS_LOADED_MAX": 2,
    "queueber.engine.topics.schemas.SCHEMAS_MAX": 8,
    "queueber.engine.topics.bridge.BRIDGE_RETRY_MS": 20,
    "queueber.engine.topics.message_blocks.TRIM_ACKNOWLEDGED_MS": 20,
    "queueber.cron.expression.EVERY_MS_MIN": 1,
    "queueber.engine.schedules.due_runs.MISSED_AFTER_MS": 30,
    "queueber.engine.schedules.due_runs.SCHEDULE_RUNS_TOGETHER": 2,
    "queueber.engine.records.callbacks.CALLBACK_RETRY_MS": 20,
    "queueber.engine.flow.callbacks.CALLBACKS_TOGETHER": 2,
    "queueber.engine.kernel.noted_times.AGENDA_SLACK_MS": 50,
}


@contextmanager
def small_limits() -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in _LOW.items():
            stack.enter_context(patch(name, value))
        yield
