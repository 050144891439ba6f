"""Groups of topics over HTTP."""

from queueber.gateway.topics.groups import dead, manage, work

ROUTES = (*manage.ROUTES, *work.ROUTES, *dead.ROUTES)
