"""Queues over HTTP: one file for each group of routes."""

from queueber.gateway.queues import items, lists, operate, outcomes, queue_list, results

ROUTES = (
    *queue_list.ROUTES,
    *items.ROUTES,
    *outcomes.ROUTES,
    *results.ROUTES,
    *lists.ROUTES,
    *operate.ROUTES,
)
