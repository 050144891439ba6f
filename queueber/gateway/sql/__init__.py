"""SQL over HTTP, in KalamDB's form."""

from queueber.gateway.sql import statements

ROUTES = statements.ROUTES
