"""A channel: what kombu's producers and consumers do, as calls on queues and topics."""

import contextlib
from collections.abc import Callable
from queue import Empty
from typing import Any, cast

from kombu.transport import virtual

from queueber.celery import messages
from queueber.celery.fetching import Fetching, fetch_items, fetch_messages, to_message
from queueber.celery.messages import RawMessage
from queueber.celery.unacknowledged import Unacknowledged
from queueber.client import Client, Queue, Topic
from queueber.errors import AlreadyExists, NotFound, OutcomeUnknown

ADDS_MAX = 5
"""How often an add is sent whose answer was lost. The server recognises it by its key."""
LEASE_SECONDS = 60.0
EXCHANGE_RETENTION_SECONDS = 3600.0
"""How long the messages of exchanges are kept: control commands, replies, events."""


class Channel(virtual.Channel):
    """Kombu's channel.

    Queues that outlive their consumers are queues of the server. Those that end with them (of
    remote control and events) are not stored: their consumers read the exchange, a topic, from the
    moment on at which they were bound, and skip what has another routing key.
    """

    QoS = Unacknowledged
    supports_fanout = True
    from_transport_options = (
        *virtual.Channel.from_transport_options,
        "visibility_timeout",
        "queue_name_prefix",
    )
    visibility_timeout = LEASE_SECONDS
    queue_name_prefix = ""

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._fetching: dict[str, list[Fetching]] = {}
        self._no_ack: set[str] = set()

    @property
    def _client(self) -> Client:
        return cast(Client, self.connection.queueber_client)

    def _queue(self, name: str, *, must_exist: bool = False) -> Queue:
        named = messages.queue_name(name, self.queue_name_prefix)
        return self._client.queue(named, must_exist=must_exist)

    def _exchange(self, exchange: str) -> Topic:
        return self._client.topic(messages.exchange_topic(exchange, self.queue_name_prefix))

    # --- queues -----------------------------------------------------------------------------------

    def _new_queue(self, queue: str, **options: Any) -> None:
        if options.get("auto_delete") or options.get("exclusive"):
            self.connection.transient.setdefault(queue, {})
            return
        with contextlib.suppress(AlreadyExists):  # with other settings, which is fine
            self._client.create_queue(messages.queue_name(queue, self.queue_name_prefix))

    def _has_queue(self, queue: str, **options: Any) -> bool:
        if queue in self.connection.transient:
            return True
        try:
            self._queue(queue, must_exist=True).stats()
        except NotFound:
            return False
        return True

    def _size(self, queue: str) -> int:
        if queue in self.connection.transient:
            return 0
        try:
            return self._queue(queue, must_exist=True).stats().ready
        except NotFound:
            return 0

    def _purge(self, queue: str) -> int:
        """Delete what waits, also for its `eta`; what workers hold stays."""
        if queue in self.connection.transient:
            return 0
        try:
            held = self._queue(queue, must_exist=True)
            return held.purge("ready") + held.purge("delayed")
        except NotFound:
            return 0

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **options: Any
    ) -> None:
        is_stored = self.connection.transient.pop(queue, None) is None
        if is_stored and if_empty and self._size(queue):
            return
        if is_stored:
            self._client.delete_queue(messages.queue_name(queue, self.queue_name_prefix))
        for exchange, routing_key, arguments in list(self.state.queue_bindings(queue)):
            self.queue_unbind(queue, exchange, routing_key, arguments)
        self.state.queue_bindings_delete(queue)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Note from where on a queue that is not stored has the messages of the exchange."""
        bindings = self.connection.transient.get(queue)
        if bindings is None:
            return
        topic = self._exchange(exchange)
        with contextlib.suppress(AlreadyExists):
            self._client.create_topic(topic.name, retention=EXCHANGE_RETENTION_SECONDS)
        start = topic.read(start="latest").end_offset
        bindings[exchange, routing_key] = (pattern, start)

    # --- producers --------------------------------------------------------------------------------

    def _inplace_augment_message(
        self, message: RawMessage, exchange: str, routing_key: str
    ) -> None:
        """Leave text as it is, so that people can read it in the queue; the rest is in base64."""
        text = messages.text_of(message)
        super()._inplace_augment_message(message, exchange, routing_key)
        if text is not None:
            message["body"] = text
            message["properties"]["body_encoding"] = "utf-8"

    def basic_publish(
        self, message: RawMessage, exchange: str, routing_key: str, **options: Any
    ) -> None:
        self._inplace_augment_message(message, exchange, routing_key)
        if not exchange:
            self._put(routing_key, message)
            return
        transient = self.connection.transient
        found = [name for name in self._lookup(exchange, routing_key) if name not in transient]
        for queue in found:
            self._put(queue, message)
        # Others may be bound to it who are not known here.
        if not found or self.typeof(exchange).type == "fanout":
            topic = self._exchange(exchange)
            topic.publish((messages.encode(message), routing_key or ""))

    def _put(self, queue: str, message: RawMessage, **options: Any) -> None:
        target = self._queue(queue)
        contents = messages.encode(message)
        for last in (False,) * (ADDS_MAX - 1) + (True,):
            try:
                target.add(
                    contents,
                    key=message["properties"]["delivery_tag"],
                    priority=messages.priority_of(message),
                    delay=messages.delay_of(message),
                    attributes=messages.attributes_of(message),
                )
            except OutcomeUnknown:
                if last:
                    raise
            else:
                return

    # --- consumers --------------------------------------------------------------------------------

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **options: Any
    ) -> None:
        super().basic_consume(queue, no_ack, callback, consumer_tag, **options)
        if no_ack:
            self._no_ack.add(queue)
        if queue not in self._fetching:
            self._fetching[queue] = list(self._begin(queue))

    def _begin(self, queue: str) -> list[Fetching]:
        deliveries = self.connection.deliveries
        bindings = self.connection.transient.get(queue)
        if bindings is None:
            source = self._queue(queue)
            return [fetch_items(queue, source, self.qos, deliveries, self.visibility_timeout)]
        return [
            fetch_messages(
                queue,
                self._exchange(exchange),
                start,
                self._matcher(queue, exchange, routing_key, pattern),
                deliveries,
            )
            for (exchange, routing_key), (pattern, start) in bindings.items()
        ]

    def _matcher(
        self, queue: str, exchange: str, routing_key: str, pattern: str
    ) -> Callable[[str], bool]:
        kind = self.typeof(exchange)
        table = [(routing_key, pattern, queue)]
        return lambda key: queue in kind.lookup(table, exchange, key, None)

    def delivered(self, queue: str, message: RawMessage) -> None:
        """A message was handed to its consumer: those without acknowledgements are done."""
        if queue in self._no_ack:
            self.qos.ack(message["properties"]["delivery_tag"])

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is None or queue in self._tag_to_queue.values():
            return
        for each in self._fetching.pop(queue, ()):
            each.stop()
        self._no_ack.discard(queue)
        unread = self.connection.deliveries.take_back(queue)
        self.qos.release(each["properties"]["delivery_tag"] for each in unread)

    def _get(self, queue: str, timeout: float | None = None) -> RawMessage:
        lease = self._queue(queue).poll(lease=self.visibility_timeout, release_on_disconnect=True)
        for tag, item in self.qos.take(lease):
            return to_message(item, tag)
        raise Empty

    def basic_get(self, queue: str, no_ack: bool = False, **options: Any) -> Any:
        message = super().basic_get(queue, no_ack=no_ack, **options)
        if message is not None and no_ack:
            self.qos.ack(message.delivery_tag)
        return message
