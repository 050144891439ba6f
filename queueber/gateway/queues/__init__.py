"""Queues over HTTP: one file for each group of routes."""

from queueber.gateway.queues import (
    callbacks,
    forget,
    items,
    lists,
    one_item,
    operate,
    outcomes,
    queue_list,
    results,
    schedules,
)

ROUTES = (
    *queue_list.ROUTES,
    *items.ROUTES,
    *outcomes.ROUTES,
    *results.ROUTES,
    *callbacks.ROUTES,
    *forget.ROUTES,
    *lists.ROUTES,
    *one_item.ROUTES,
    *operate.ROUTES,
    *schedules.ROUTES,
)
