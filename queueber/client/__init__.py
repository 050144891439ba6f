"""Clients of a server: blocking ones, and awaited ones for asyncio and trio.

api/        what users hold: clients, queues, leases
arguments/  what users pass, checked
calls/      one file for each group of calls to the server
transport/  connection, batching, retries, and where the loop runs
"""

from queueber.client.api.async_client import AsyncClient
from queueber.client.api.async_lease import AsyncLease
from queueber.client.api.async_load import AsyncLoad
from queueber.client.api.async_producer import AsyncProducer
from queueber.client.api.async_queue import AsyncQueue
from queueber.client.api.async_snapshot import AsyncSnapshot
from queueber.client.api.client import Client
from queueber.client.api.connect import connect, connect_async
from queueber.client.api.item import Item
from queueber.client.api.lease import Lease
from queueber.client.api.load import Load
from queueber.client.api.producer import Producer
from queueber.client.api.queue import Queue
from queueber.client.api.snapshot import Snapshot
from queueber.client.arguments.queue_settings import Backoff
from queueber.client.calls.adds import AddedIds
from queueber.client.calls.items import PeekPage

__all__ = [
    "AddedIds",
    "AsyncClient",
    "AsyncLease",
    "AsyncLoad",
    "AsyncProducer",
    "AsyncQueue",
    "AsyncSnapshot",
    "Backoff",
    "Client",
    "Item",
    "Lease",
    "Load",
    "PeekPage",
    "Producer",
    "Queue",
    "Snapshot",
    "connect",
    "connect_async",
]
