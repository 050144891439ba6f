"""Calls about the sources of a topic."""

from concurrent.futures import Future
from typing import Any

from queueber.client.arguments.sources import to_on, to_source
from queueber.client.arguments.values import to_name
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.wire.routes import write_on, write_source


class RouteCalls:
    def __init__(self, topic: RemoteQueue) -> None:
        self._topic = topic

    def add(
        self, queue: object, on: object, where: object, partition_by: object, payload: object
    ) -> "Future[bool]":
        source = to_source(queue, on, where, partition_by, payload)

        def send(topic: Any) -> Any:
            request = topic.addSource_request()
            write_source(request.init("source"), source)
            return request.send()

        # A repeat finds the same source, and changes nothing.
        return self._topic.ask(send, lambda response: bool(response.added))

    def drop(self, queue: object, on: object) -> "Future[int]":
        name = to_name(queue)
        number = write_on(None if on is None else to_on(on))
        return self._topic.ask(
            lambda topic: topic.dropSource(name, number),
            lambda response: int(response.dropped),
            is_repeatable=False,
        )
