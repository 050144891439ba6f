"""`/live/histories`: one series of many queues and topics, for the sparklines of a page."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from queueber.gateway.calls import Call
from queueber.gateway.dashboard.subjects import TOPICS_SHOWN
from queueber.gateway.routes import NoQuery, Route
from queueber.model import History

_QUEUES_MAX = 100
_POINTS = 60
"""Of the last hour, which has 360: a sparkline has as many pixels as two points."""
_QUEUE_SERIES, _TOPIC_SERIES = "ready", "messages_per_s"


class SparklinesRequest(msgspec.Struct, forbid_unknown_fields=True):
    queues: Annotated[list[str], Meta(max_length=_QUEUES_MAX)] = msgspec.field(default_factory=list)
    topics: Annotated[list[str], Meta(max_length=TOPICS_SHOWN)] = msgspec.field(
        default_factory=list
    )
    span: Literal["hour", "day"] = "hour"


class SparklinesAnswer(msgspec.Struct):
    queues: dict[str, list[float]]
    """How many items were ready, oldest first; empty if the server remembers nothing."""
    topics: dict[str, list[float]]
    """Messages a second."""


async def sparklines(call: Call[NoQuery, SparklinesRequest]) -> SparklinesAnswer:
    body = call.body
    found = await call.client.histories(queues=body.queues, topics=body.topics, span=body.span)
    return SparklinesAnswer(
        _thinned(found.queues, _QUEUE_SERIES), _thinned(found.topics, _TOPIC_SERIES)
    )


def _thinned(histories: Mapping[str, History], series: str) -> dict[str, list[float]]:
    return {name: thin(each.series.get(series, ())) for name, each in histories.items()}


def thin(values: Sequence[float]) -> list[float]:
    """At most so many points, each the largest of those that it stands for: peaks stay."""
    count = len(values)
    if count <= _POINTS:
        return list(values)
    bounds = [count * at // _POINTS for at in range(_POINTS + 1)]
    return [max(values[a:b]) for a, b in pairwise(bounds)]


ROUTES = (
    Route(
        "POST", "/live/histories", sparklines, "Sparklines of queues and topics", "dashboard",
        body=SparklinesRequest, answer=SparklinesAnswer, is_shown=False,
    ),
)  # fmt: skip
