"""Subscriptions to streams: workers are woken when there is something to read.

A subscription is a record in a topic of its own (`records/`). Gateways keep nothing else, so any
number of them may serve the same subscriptions.
"""

from queueber.gateway.streams.subscriptions.routes import ROUTES
from queueber.gateway.streams.subscriptions.state import join

__all__ = ["ROUTES", "join"]
