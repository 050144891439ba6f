"""The list of streams, by the beginning of their paths."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber.gateway.calls import Call
from queueber.gateway.streams.paths import OWN
from queueber.limits import TOPIC_LIST_MAX, TOPIC_NAME_BYTES_MAX

_LAST_OWN = OWN + "z" * (TOPIC_NAME_BYTES_MAX - len(OWN))
"""No name that begins so comes after it."""

_Start = Annotated[str, Meta(pattern=f"^[A-Za-z0-9._/-]{{0,{TOPIC_NAME_BYTES_MAX}}}$")]


class StreamsQuery(msgspec.Struct, forbid_unknown_fields=True):
    prefix: _Start = ""
    """Only paths that begin with it."""
    after: _Start = ""
    """The last path of the page before."""
    limit: Annotated[int, Meta(ge=1, le=TOPIC_LIST_MAX)] = 100


class StreamPage(msgspec.Struct):
    streams: list[str]
    """Paths, in order."""
    more: bool
    """Whether there are further ones: pass the last path as `after`."""


async def list_streams(call: Call[StreamsQuery, None]) -> StreamPage:
    """Streams that the caller may see; never what the gateway keeps for itself."""
    query, found = call.query, list[str]()
    if query.prefix.startswith(OWN):
        return StreamPage(found, more=False)
    after = query.after
    while True:
        async for name in call.client.topics(query.prefix, after=after):
            if name.startswith(OWN):
                break
            if len(found) == query.limit:
                return StreamPage(found, more=True)
            found.append(name)
        else:
            return StreamPage(found, more=False)
        after = max(after, _LAST_OWN)
