"""The methods about callbacks of batches."""

from typing import Any

from queueber.rpc.calls import Answer, QueueMethods, call, respond_with
from queueber.wire.callbacks import read_callback, write_callback_info


class CallbackMethods(QueueMethods):
    @call
    def whenComplete_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        callback = read_callback(params.callback)
        stored = self._service.callbacks.when_complete(self._queue, params.batch, callback)
        return respond_with(context, "info", stored, write_callback_info)

    @call
    def callback_context(self, context: Any) -> Answer:
        found = self._service.callbacks.describe_callback(self._queue, context.params.batch)
        return respond_with(context, "info", found, write_callback_info)
