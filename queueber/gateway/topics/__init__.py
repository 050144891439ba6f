"""Topics over HTTP: one file for each group of routes."""

from queueber.gateway.topics import groups, operate, publish, read, tails, together, topic_list

ROUTES = (
    *topic_list.ROUTES,
    *publish.ROUTES,
    *read.ROUTES,
    *tails.ROUTES,
    *operate.ROUTES,
    *groups.ROUTES,
    *together.ROUTES,
)
