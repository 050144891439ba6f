"""Topics over HTTP: one file for each group of routes."""

from dataclasses import replace

from queueber.gateway.topics import (
    groups,
    operate,
    publish,
    read,
    sources,
    tails,
    together,
    topic_list,
)
from queueber.gateway.topics.named_topic import trying_twice

_ROUTES = (
    *topic_list.ROUTES,
    *publish.ROUTES,
    *read.ROUTES,
    *tails.ROUTES,
    *operate.ROUTES,
    *sources.ROUTES,
    *groups.ROUTES,
    *together.ROUTES,
)

ROUTES = tuple(replace(route, handle=trying_twice(route.handle)) for route in _ROUTES)
