"""The dashboard: a page of static files, and what it shows as server-sent events.

    page ──▶ /live ──▶ one feed for each subject and caller ──▶ awaited client ──▶ server

The page asks the API of the gateway for everything else. It has no build step and no asset of
others, and it never reads HTML out of what the server answers.
"""

from queueber.gateway.dashboard import histories, live, pages

ROUTES = (*pages.ROUTES, *live.ROUTES, *histories.ROUTES)
