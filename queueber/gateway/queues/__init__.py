"""Queues over HTTP: one file for each group of routes."""

from queueber.gateway.queues import items, queue_list

ROUTES = (*queue_list.ROUTES, *items.ROUTES)
