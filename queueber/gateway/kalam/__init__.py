"""KalamDB's HTTP: consuming topics, and logging in, as clients of KalamDB ask for it."""

from queueber.gateway.kalam import auth, consume, health

ROUTES = (*consume.ROUTES, *auth.ROUTES, *health.ROUTES)
