"""Queues: name, settings and pause, as `QueueRecord` of `schema/storage.capnp`."""

from queueber.model import QueueSettings
from queueber.schema import storage


def encode_queue(
    name: str, created_at_ms: int, settings: QueueSettings, paused_until_ms: int = 0
) -> bytes:
    s = settings
    message = storage.QueueRecord.new_message(
        name=name,
        createdAtMs=created_at_ms,
        itemsMax=s.items_max,
        bytesMax=s.bytes_max,
        itemBytesMax=s.item_bytes_max,
        leaseMs=s.lease_ms,
        attemptsMax=s.attempts_max,
        backoffMs=list(s.backoff_ms),
        backoffBaseMs=s.backoff_base_ms,
        backoffFactor=s.backoff_factor,
        backoffCapMs=s.backoff_cap_ms,
        backoffJitter=s.backoff_jitter,
        dedupWindowMs=s.dedup_window_ms,
        resultAgeMs=s.result_age_ms,
        resultBytesMax=s.result_bytes_max,
        noIsolation=not s.isolation,
        pausedUntilMs=paused_until_ms,
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_queue(value: bytes) -> tuple[str, int, QueueSettings, int]:
    """Name, created-at, settings, paused-until."""
    with storage.QueueRecord.from_bytes(value) as r:
        settings = QueueSettings(
            items_max=r.itemsMax,
            bytes_max=r.bytesMax,
            item_bytes_max=r.itemBytesMax,
            lease_ms=r.leaseMs,
            attempts_max=r.attemptsMax,
            backoff_ms=tuple(r.backoffMs),
            backoff_base_ms=r.backoffBaseMs,
            backoff_factor=r.backoffFactor,
            backoff_cap_ms=r.backoffCapMs,
            backoff_jitter=r.backoffJitter,
            dedup_window_ms=r.dedupWindowMs,
            result_age_ms=r.resultAgeMs,
            result_bytes_max=r.resultBytesMax,
            isolation=not r.noIsolation,
        )
        return str(r.name), r.createdAtMs, settings, r.pausedUntilMs
