"""The calls about callbacks of batches."""

from concurrent.futures import Future
from operator import methodcaller
from typing import Any

from queueber.client.arguments.values import to_batch
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.model import Callback, CallbackInfo
from queueber.wire.callbacks import read_callback_info, write_callback


class CallbackCalls:
    """Both are safe to repeat: the server knows a callback that it has."""

    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def put(self, batch: object, callback: Callback) -> "Future[CallbackInfo]":
        name = to_batch(batch)

        def send(queue: Any) -> Any:
            request = queue.whenComplete_request()
            request.batch = name
            write_callback(request.init("callback"), callback)
            return request.send()

        return self._queue.ask(send, lambda response: read_callback_info(response.info))

    def describe(self, batch: object) -> "Future[CallbackInfo]":
        return self._queue.ask(
            methodcaller("callback", to_batch(batch)),
            lambda response: read_callback_info(response.info),
        )
