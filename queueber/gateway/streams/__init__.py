"""Durable Streams over HTTP: a stream is a topic with one partition and a content type."""

from typing import Any

from queueber import errors
from queueber.gateway.routes import Route
from queueber.gateway.streams import append, create, delete, options, read, stream_info
from queueber.gateway.streams.extensions.routes import ROUTES as EXTENSION_ROUTES
from queueber.gateway.streams.handled import handled
from queueber.gateway.streams.paths import ROOT

_PATH = ROOT + "{path*}"
_TAG = "streams"


def _route(method: str, handle: Any, summary: str, **named: Any) -> Route:
    return Route(
        method, _PATH, handled(handle), summary, _TAG, is_plain=True, is_for_pages=True, **named
    )


ROUTES = (
    _route(
        "PUT", create.create, "Create a stream", status=201, takes_bytes=True,
        description="The body, if there is one, is its first content. 409 if it exists and is "
        "not what is asked for.",
        other_statuses={200: "It exists as asked for."},
        errors=(errors.AlreadyExists, errors.NotFound, errors.ResourceExhausted),
    ),
    _route(
        "POST", append.append, "Append to a stream, or close it", status=204, takes_bytes=True,
        description="204, or 200 for something new of a producer.",
        other_statuses={200: "A producer's append is stored."},
        errors=(errors.NotFound, errors.Aborted, errors.FailedPrecondition,
                errors.ResourceExhausted, errors.OutcomeUnknown),
    ),
    _route(
        "GET", read.read, "Read a stream, or follow it", query=read.StreamQuery,
        description="From `offset` on; `live` is `long-poll` or `sse`.",
        other_statuses={204: "Nothing came.", 304: "The caller has it."},
        errors=(errors.NotFound,),
    ),
    _route(
        "HEAD", stream_info.show, "Show a stream", errors=(errors.NotFound,),
    ),
    _route(
        "DELETE", delete.delete, "Delete a stream", status=204, errors=(errors.NotFound,),
    ),
    *EXTENSION_ROUTES,
    _route("OPTIONS", options.options, "Show what a page may send", uses_client=False, status=204),
)  # fmt: skip
