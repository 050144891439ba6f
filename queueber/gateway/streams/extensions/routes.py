"""The routes of what streams have beyond the protocol."""

from typing import Any

from queueber import errors
from queueber.gateway.routes import Route
from queueber.gateway.streams import options
from queueber.gateway.streams.extensions import details, profiles, records, stream_list
from queueber.gateway.streams.extensions.schemas import registry
from queueber.gateway.streams.handled import handled
from queueber.gateway.streams.paths import ROOT

_PATH = ROOT + "{path*}"
_TAG = "streams"


def _route(method: str, last: str, handle: Any, summary: str, **named: Any) -> Route:
    path = f"{_PATH}/{last}"
    return Route(method, path, handled(handle), summary, _TAG, is_for_pages=True, **named)


def _options(last: str) -> Route:
    return _route(
        "OPTIONS", last, options.options, "Show what a page may send", is_plain=True,
        uses_client=False, status=204,
    )  # fmt: skip


_VERSION_EXAMPLE = {
    "version": 1,
    "from_offset": {"token": "0000000000000007_0000000000000000", "offset": 0},
    "at_ms": 1730000000000,
}

ROUTES = (
    Route(
        "GET", "/v1/streams", stream_list.list_streams, "List the paths of streams", _TAG,
        query=stream_list.StreamsQuery, answer=stream_list.StreamPage, is_for_pages=True,
        answer_example={"streams": ["orders", "orders/audit"], "more": False},
    ),
    _route(
        "GET", "_details", details.show_details, "Show what a stream is and holds",
        answer=details.StreamDetails, other_statuses={304: "The caller has it."},
        errors=(errors.NotFound,), answer_example=details.EXAMPLE,
    ),
    _route(
        "GET", "_records", records.read_records, "Read messages with their offsets and times",
        query=records.RecordsQuery, answer=records.RecordPage, errors=(errors.NotFound,),
    ),
    _route(
        "GET", "_profile", profiles.show_profile, "Show the profile of a stream",
        answer=profiles.ProfileAnswer, errors=(errors.NotFound,),
    ),
    _route(
        "GET", "_schema", registry.show_schema, "Show a version of the schema of a stream",
        query=registry.SchemaQuery, answer=registry.SchemaAnswer, errors=(errors.NotFound,),
    ),
    _route(
        "PUT", "_schema", registry.set_schema, "Set the next version of the schema of a stream",
        description="The body is a JSON Schema. Messages from here on must fit it. `If-Match` "
        "names the version that must be in force; `If-None-Match: *`: there is none.",
        answer=registry.SchemaVersion, status=201, is_plain=True, takes_bytes=True,
        other_statuses={200: "It is in force already."},
        errors=(errors.NotFound, errors.FailedPrecondition, errors.ResourceExhausted),
        answer_example=_VERSION_EXAMPLE,
    ),
    Route(
        "OPTIONS", "/v1/streams", options.options_of_list, "Show what a page may send", _TAG,
        is_plain=True, is_for_pages=True, uses_client=False, status=204,
    ),
    *(_options(last) for last in ("_details", "_records", "_profile", "_schema")),
)  # fmt: skip
