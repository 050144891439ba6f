"""Live tails of topics over HTTP."""

from queueber.gateway.topics.tails import tail

ROUTES = tail.ROUTES
