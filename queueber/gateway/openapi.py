"""OpenAPI 3.1, made from the route table and its structs."""

from queueber.gateway.routes import Route

ROUTES: tuple[Route, ...] = ()
