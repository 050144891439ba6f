"""Codecs of settings, statistics and server information: messages to plain values and back."""

from typing import Any

from queueber.limits import BACKOFF_STEPS_MAX
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.wire.lists import read_list

_SETTINGS_FIELDS = {
    "itemsMax": "items_max",
    "bytesMax": "bytes_max",
    "itemBytesMax": "item_bytes_max",
    "leaseMs": "lease_ms",
    "attemptsMax": "attempts_max",
    "backoffBaseMs": "backoff_base_ms",
    "backoffFactor": "backoff_factor",
    "backoffCapMs": "backoff_cap_ms",
    "backoffJitter": "backoff_jitter",
    "dedupWindowMs": "dedup_window_ms",
    "resultAgeMs": "result_age_ms",
    "resultBytesMax": "result_bytes_max",
}


def read_settings(settings: Any) -> QueueSettings:
    values = {name: getattr(settings, wire_name) for wire_name, name in _SETTINGS_FIELDS.items()}
    backoff_ms = tuple(read_list("backoffMs", settings.backoffMs, BACKOFF_STEPS_MAX))
    return QueueSettings(backoff_ms=backoff_ms, isolation=not settings.noIsolation, **values)


def write_settings(target: Any, settings: QueueSettings) -> None:
    for wire_name, name in _SETTINGS_FIELDS.items():
        setattr(target, wire_name, getattr(settings, name))
    target.backoffMs = list(settings.backoff_ms)
    target.noIsolation = not settings.isolation


_STATS_FIELDS = {
    "name": "name",
    "createdAtMs": "created_at_ms",
    "ready": "ready",
    "delayed": "delayed",
    "inProgress": "leased",
    "leases": "leases",
    "contentsBytes": "contents_bytes",
    "oldestClaimableAgeMs": "oldest_claimable_age_ms",
    "waitingPolls": "waiting_polls",
    "addedTotal": "added_total",
    "polledTotal": "polled_total",
    "removedTotal": "removed_total",
    "expiredTotal": "expired_total",
    "extendedTotal": "extended_total",
    "dead": "dead",
    "completedTotal": "completed_total",
    "failedTotal": "failed_total",
    "releasedTotal": "released_total",
    "diedTotal": "died_total",
    "redrivenTotal": "redriven_total",
    "cancelledTotal": "cancelled_total",
    "duplicatesTotal": "duplicates_total",
    "pausedUntilMs": "paused_until_ms",
    "results": "results",
    "resultBytes": "result_bytes",
    "batches": "batches",
}


def write_stats(target: Any, stats: Stats) -> None:
    write_settings(target.init("settings"), stats.settings)
    for wire_name, name in _STATS_FIELDS.items():
        setattr(target, wire_name, getattr(stats, name))


def read_stats(source: Any) -> Stats:
    values = {name: getattr(source, wire_name) for wire_name, name in _STATS_FIELDS.items()}
    return Stats(settings=read_settings(source.settings), **values)


def write_server_info(target: Any, info: ServerInfo) -> None:
    target.version = info.version
    target.durability = info.durability
    target.itemBytesMax = info.item_bytes_max
    target.messageBytesMax = info.message_bytes_max
    target.pollItemsMax = info.poll_items_max
    target.pollWaitMsMax = info.poll_wait_ms_max


def read_server_info(source: Any) -> ServerInfo:
    return ServerInfo(
        source.version,
        source.durability,
        source.itemBytesMax,
        source.messageBytesMax,
        source.pollItemsMax,
        source.pollWaitMsMax,
    )
