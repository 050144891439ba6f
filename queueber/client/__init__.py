"""Clients of a server: blocking ones, and awaited ones for asyncio and trio.

api/        what users hold: clients, queues, leases
arguments/  what users pass, checked
calls/      one file for each group of calls to the server
transport/  connection, batching, retries, and where the loop runs
"""

from queueber.client.api.async_backup import AsyncBackup as AsyncBackup
from queueber.client.api.async_client import AsyncClient as AsyncClient
from queueber.client.api.async_deliveries import AsyncDeliveries as AsyncDeliveries
from queueber.client.api.async_lease import AsyncLease as AsyncLease
from queueber.client.api.async_load import AsyncLoad as AsyncLoad
from queueber.client.api.async_queue import AsyncProducer as AsyncProducer
from queueber.client.api.async_queue import AsyncQueue as AsyncQueue
from queueber.client.api.async_snapshot import AsyncSnapshot as AsyncSnapshot
from queueber.client.api.async_subscription import AsyncReceived as AsyncReceived
from queueber.client.api.async_subscription import AsyncSubscription as AsyncSubscription
from queueber.client.api.async_together import AsyncTogether as AsyncTogether
from queueber.client.api.async_topic import AsyncTopic as AsyncTopic
from queueber.client.api.async_topic_producer import AsyncTopicProducer as AsyncTopicProducer
from queueber.client.api.backup import Backup as Backup
from queueber.client.api.client import Client as Client
from queueber.client.api.connect import connect as connect
from queueber.client.api.connect import connect_async as connect_async
from queueber.client.api.deliveries import Deliveries as Deliveries
from queueber.client.api.item import Item as Item
from queueber.client.api.lease import Lease as Lease
from queueber.client.api.load import Load as Load
from queueber.client.api.message import Message as Message
from queueber.client.api.message import MessagePage as MessagePage
from queueber.client.api.queue import Producer as Producer
from queueber.client.api.queue import Queue as Queue
from queueber.client.api.snapshot import Snapshot as Snapshot
from queueber.client.api.subscription import Received as Received
from queueber.client.api.subscription import Subscription as Subscription
from queueber.client.api.together import Together as Together
from queueber.client.api.topic import Topic as Topic
from queueber.client.api.topic_producer import TopicProducer as TopicProducer
from queueber.client.arguments.new_messages import NewMessage as NewMessage
from queueber.client.arguments.queue_settings import Backoff as Backoff
from queueber.client.calls.adds import AddedIds as AddedIds
from queueber.client.calls.items import LeasePage as LeasePage
from queueber.client.calls.items import PeekPage as PeekPage
from queueber.client.calls.results import BatchPage as BatchPage
