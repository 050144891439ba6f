"""The calls about what the server measures."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from queueber.client.arguments.measures import to_span
from queueber.client.arguments.topic_names import to_topic_name
from queueber.client.arguments.values import to_name, to_number
from queueber.client.transport.connection import Connection
from queueber.limits import HISTORY_NAMES_MAX
from queueber.model import Histories, MetricFamily
from queueber.wire.measures import read_family, read_history

_POINTS_MAX = (1 << 32) - 1


class MeasureCalls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def metrics(self) -> "Future[list[MetricFamily]]":
        return self._connection.ask(
            lambda link: link.service.metrics(),
            lambda response: [read_family(each) for each in response.families],
        )

    def histories(
        self, queues: Iterable[str], topics: Iterable[str], span: str, points: int
    ) -> "Future[Histories]":
        queue_names = [to_name(each) for each in queues]
        topic_names = [to_topic_name(each) for each in topics]
        wanted, count = to_span(span), to_number("points", points, least=0, limit=_POINTS_MAX)
        return self._connection.submit(
            lambda: self._histories(queue_names, topic_names, wanted.value, count)
        )

    async def _histories(
        self, queues: list[str], topics: list[str], span: str, points: int
    ) -> Histories:
        found = Histories({}, {})
        # The server takes so many in a call.
        for start in range(0, max(len(queues), len(topics)), HISTORY_NAMES_MAX):
            part = slice(start, start + HISTORY_NAMES_MAX)
            response = await self._ask(queues[part], topics[part], span, points)
            found.queues |= _by_name(queues[part], response.queues)
            found.topics |= _by_name(topics[part], response.topics)
        return found

    async def _ask(self, queues: list[str], topics: list[str], span: str, points: int) -> Any:
        return await self._connection.call(
            lambda link: link.service.histories(queues, topics, span, points), is_repeatable=True
        )


def _by_name(names: list[str], histories: Any) -> dict[str, Any]:
    return dict(zip(names, map(read_history, histories), strict=True))
