"""How long handlers take, and how many fail, as metrics of OpenTelemetry."""

from weakref import WeakKeyDictionary

from queueber.clock import seconds
from queueber.version import VERSION
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import WorkItem


class HandlerMetrics(Middleware):
    """Records `messaging.process.duration`, a histogram of seconds, for every call of the handler
    that returns, raises or takes too long.

    Its attributes are the queue, the job of an app, and for failures `error.type`. It needs
    `queueber[otel]`, and a meter provider that the program has set up.
    """

    def start(self, source: str) -> None:
        from opentelemetry.metrics import get_meter

        self._attributes = {
            "messaging.system": "queueber",
            "messaging.operation.type": "process",
        }
        # Weakly: a coroutine whose lease is lost is cancelled, and neither returns nor fails.
        self._began: WeakKeyDictionary[WorkItem, float] = WeakKeyDictionary()
        self._durations = get_meter("queueber", VERSION).create_histogram(
            "messaging.process.duration", unit="s", description="How long a handler took."
        )

    def before(self, item: WorkItem) -> None:
        self._began[item] = seconds()

    def after(self, item: WorkItem, returned: object) -> None:
        self._record(item, {})

    def on_error(self, item: WorkItem, error: BaseException) -> None:
        self._record(item, {"error.type": type(error).__name__})

    def _record(self, item: WorkItem, attributes: dict[str, str]) -> None:
        """Once an item: a result that cannot be serialized is an error after a return."""
        began = self._began.pop(item, None)
        if began is not None:
            about = {"messaging.destination.name": item.source}
            if item.job:
                about["queueber.job"] = item.job
            self._durations.record(seconds() - began, {**self._attributes, **about, **attributes})
