"""Topics over HTTP: one file for each group of routes."""

from queueber.gateway.topics import (
    dead,
    group_list,
    group_work,
    operate,
    publish,
    read,
    tail,
    together,
    topic_list,
)

ROUTES = (
    *topic_list.ROUTES,
    *publish.ROUTES,
    *read.ROUTES,
    *tail.ROUTES,
    *operate.ROUTES,
    *group_list.ROUTES,
    *group_work.ROUTES,
    *dead.ROUTES,
    *together.ROUTES,
)
