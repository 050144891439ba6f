"""How one queue or topic went over time, as the server remembers it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import Route
from queueber.gateway.topics.named_topic import present_topic
from queueber.model import History

_POINTS_MAX = 10_000


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True):
    span: Literal["hour", "day"] = "hour"
    """A point every 10 seconds of the last hour, or every 5 minutes of the last day."""
    points: Annotated[int, Meta(ge=0, le=_POINTS_MAX)] = 0
    """The last so many; 0: all."""


class HistoryAnswer(msgspec.Struct):
    """Empty if the server remembers nothing: it keeps histories of what is used most."""

    end_ms: int
    """The time of the last point."""
    step_ms: int
    series: dict[str, list[float]]
    """By name, oldest point first."""


async def show_queue_history(call: Call[HistoryQuery, None]) -> HistoryAnswer:
    await present_queue(call).stats()  # `NotFound` if there is none
    name, query = call.names["queue"], call.query
    found = await call.client.histories(queues=[name], span=query.span, points=query.points)
    return _shown(found.queues[name])


async def show_topic_history(call: Call[HistoryQuery, None]) -> HistoryAnswer:
    await present_topic(call).describe()
    name, query = call.names["topic"], call.query
    found = await call.client.histories(topics=[name], span=query.span, points=query.points)
    return _shown(found.topics[name])


def _shown(history: History) -> HistoryAnswer:
    series = {name: list(values) for name, values in history.series.items()}
    return HistoryAnswer(history.end_ms, history.step_ms, series)


ROUTES = (
    Route(
        "GET", "/v1/queues/{queue}/history", show_queue_history,
        "Show how a queue went over the last hour or day", "queues",
        query=HistoryQuery, answer=HistoryAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "GET", "/v1/topics/{topic}/history", show_topic_history,
        "Show how a topic went over the last hour or day", "topics",
        query=HistoryQuery, answer=HistoryAnswer, errors=(errors.NotFound,),
    ),
)  # fmt: skip
