"""Queueber: a durable, lease-based work queue.

    client ─▶ rpc ─▶ service ─▶ engine ─▶ one batch ─▶ RocksDB
                       └─ answered once the write ahead log is synced

The names below are the public ones. Importing them needs no RocksDB.
"""

from queueber.client.adding import AddedIds
from queueber.client.async_client import AsyncClient, connect_async
from queueber.client.async_queue import AsyncQueue
from queueber.client.client import Client, connect
from queueber.client.lease import AsyncLease, Lease
from queueber.client.leased import Item
from queueber.client.load import AsyncLoad, Load
from queueber.client.operating import PeekPage
from queueber.client.producer import AsyncProducer, Producer
from queueber.client.queue import Queue
from queueber.client.settings import Backoff
from queueber.client.snapshot import AsyncSnapshot, Snapshot
from queueber.errors import (
    Aborted,
    Internal,
    InvalidArgument,
    LeaseExpired,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    QueueberError,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from queueber.model import (
    FailOutcome,
    ItemInfo,
    ItemState,
    LoadInfo,
    LoadRef,
    LoadState,
    LogStats,
    Origin,
    PartRef,
    QueueSettings,
    Receipt,
    Result,
    Results,
    Rows,
    ServerInfo,
    SnapshotInfo,
    SnapshotRange,
    Stats,
)
from queueber.version import VERSION as __version__
from queueber.worker.holding import WorkItem
from queueber.worker.outcomes import Retry
from queueber.worker.tally import WorkerStats
from queueber.worker.worker import Worker

__all__ = [
    "Aborted",
    "AddedIds",
    "AsyncClient",
    "AsyncLease",
    "AsyncLoad",
    "AsyncProducer",
    "AsyncQueue",
    "AsyncSnapshot",
    "Backoff",
    "Client",
    "FailOutcome",
    "Internal",
    "InvalidArgument",
    "Item",
    "ItemInfo",
    "ItemState",
    "Lease",
    "LeaseExpired",
    "Load",
    "LoadInfo",
    "LoadRef",
    "LoadState",
    "LogStats",
    "NotFound",
    "Origin",
    "OutcomeUnknown",
    "PartRef",
    "PeekPage",
    "PermissionDenied",
    "Producer",
    "Queue",
    "QueueSettings",
    "QueueberError",
    "Receipt",
    "ResourceExhausted",
    "Result",
    "Results",
    "Retry",
    "Rows",
    "ServerInfo",
    "Snapshot",
    "SnapshotInfo",
    "SnapshotRange",
    "Stats",
    "Unauthenticated",
    "Unavailable",
    "WorkItem",
    "Worker",
    "WorkerStats",
    "__version__",
    "connect",
    "connect_async",
]
