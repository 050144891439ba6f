"""Queueber: a durable, lease-based work queue.

    client ─▶ rpc ─▶ service ─▶ engine ─▶ one batch ─▶ RocksDB
                       └─ answered once the write ahead log is synced

The names below are the public ones. Importing them needs no RocksDB.
"""

from queueber.client.async_client import AsyncClient, AsyncLease, AsyncQueue, connect_async
from queueber.client.client import Client, Lease, Queue, connect
from queueber.client.leased import Item
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
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.version import VERSION as __version__

__all__ = [
    "Aborted",
    "AsyncClient",
    "AsyncLease",
    "AsyncQueue",
    "Client",
    "Internal",
    "InvalidArgument",
    "Item",
    "Lease",
    "LeaseExpired",
    "NotFound",
    "OutcomeUnknown",
    "PermissionDenied",
    "Queue",
    "QueueSettings",
    "QueueberError",
    "ResourceExhausted",
    "ServerInfo",
    "Stats",
    "Unauthenticated",
    "Unavailable",
    "__version__",
    "connect",
    "connect_async",
]
