"""The transport behind `queueber://` addresses of kombu."""

from typing import Any

from kombu.transport import virtual

from queueber.celery.channel import Channel
from queueber.celery.clients import PORT, connect_to
from queueber.celery.deliveries import Deliveries
from queueber.client import Client
from queueber.errors import OutcomeUnknown, QueueberError, Unavailable
from queueber.version import VERSION


class Transport(virtual.Transport):
    """Kombu's transport: one client of the server, shared by the channels of a connection."""

    Channel = Channel
    default_port = PORT
    driver_type = "queueber"
    driver_name = "queueber"
    connection_errors = (*virtual.Transport.connection_errors, Unavailable, OutcomeUnknown)
    channel_errors = (*virtual.Transport.channel_errors, QueueberError)
    implements = virtual.Transport.implements.extend(
        asynchronous=False,
        exchange_type=frozenset(["direct", "topic", "fanout"]),
        heartbeats=False,
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.deliveries = Deliveries()
        self.transient: dict[str, dict[tuple[str, str], tuple[str, int]]] = {}
        """Queues that are not stored, and their bindings: a pattern, and an offset to begin at."""
        self._queueber: Client | None = None

    @property
    def queueber_client(self) -> Client:
        if self._queueber is None:
            asked = self.client
            self._queueber = connect_to(
                asked.hostname,
                asked.port,
                user=asked.userid,
                password=asked.password,
                options=asked.transport_options,
                name="celery",
            )
        return self._queueber

    def driver_version(self) -> str:
        return VERSION

    def establish_connection(self) -> Any:
        self.queueber_client.server()  # so that an address where nobody listens is an error here
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        try:
            super().close_connection(connection)
        finally:
            if self._queueber is not None:
                self._queueber.close()
                self._queueber = None

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Hand the next message to its consumer; TimeoutError, which is socket.timeout, if none
        comes in time."""
        arrived = self.deliveries.get(timeout)
        self._deliver(arrived.message, arrived.queue)

    def _deliver(self, message: Any, queue: str) -> None:
        super()._deliver(message, queue)
        for channel in list(self.channels):
            channel.delivered(queue, message)
