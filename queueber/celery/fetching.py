"""Threads that fetch messages for a consumer: leases of a queue, or messages of an exchange."""

import threading
from collections.abc import Callable

from queueber.celery.deliveries import Deliveries, Delivery
from queueber.celery.messages import RawMessage, decode
from queueber.celery.unacknowledged import Unacknowledged
from queueber.client import Item, Queue, Topic
from queueber.errors import QueueberError

WAIT_SECONDS = 1.0
"""How long one call waits for messages. A consumer that is cancelled ends within this time."""


class Fetching:
    """A thread that runs until `stop`, and hands on what it fails with."""

    def __init__(self, deliveries: Deliveries, fetch: Callable[[], None], name: str) -> None:
        self._deliveries = deliveries
        self._fetch = fetch
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._fetch()
            except QueueberError as error:
                if not self._stopped.is_set():
                    self._deliveries.put(error)
                return

    def stop(self) -> None:
        """No call begins from now on."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()


def fetch_items(
    name: str, queue: Queue, held: Unacknowledged, deliveries: Deliveries, lease_seconds: float
) -> Fetching:
    """Lease items as long as there is room for them."""

    def fetch() -> None:
        if not (room := held.wait_for_room(WAIT_SECONDS)):
            return
        lease = queue.poll(room, lease=lease_seconds, wait=WAIT_SECONDS, release_on_disconnect=True)
        if fetching.is_stopped:
            lease.release()
            return
        for tag, item in held.take(lease):
            try:
                message = to_message(item, tag)
            except (ValueError, LookupError, TypeError) as error:
                held.fail(tag, f"not a message of kombu: {error!r}")
            else:
                deliveries.put(Delivery(name, message))
        if fetching.is_stopped:  # meanwhile; nobody will read them
            unread = deliveries.take_back(name)
            held.release(each["properties"]["delivery_tag"] for each in unread)

    fetching = Fetching(deliveries, fetch, f"queueber-celery-{name}")
    fetching.start()
    return fetching


def to_message(item: Item, tag: str) -> RawMessage:
    message = decode(item.contents)
    properties = message["properties"]
    properties["delivery_tag"] = tag
    properties["delivery_info"]["redelivered"] = item.deliveries > 1
    return message


def fetch_messages(
    name: str,
    topic: Topic,
    start: int,
    matches: Callable[[str], bool],
    deliveries: Deliveries,
) -> Fetching:
    """Read an exchange from an offset on: the messages whose routing key matches."""
    at = start

    def fetch() -> None:
        nonlocal at
        page = topic.read(start=at, wait=WAIT_SECONDS, moves=True)
        at = page.next_offset
        if fetching.is_stopped:
            return
        for each in page:
            if matches(each.key or ""):
                message = decode(each.payload)
                message["properties"]["delivery_tag"] = f"{topic.name}-{each.offset}"
                deliveries.put(Delivery(name, message))

    fetching = Fetching(deliveries, fetch, f"queueber-celery-{name}")
    fetching.start()
    return fetching
