"""OPTIONS: what a page may send. Whether it may at all, its origin decides."""

from typing import Any

from queueber.gateway.calls import Call
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams.answers import NOSNIFF

METHODS = b"GET, HEAD, POST, PUT, DELETE, OPTIONS"
_TAKEN = (
    b"content-type, authorization, if-match, if-none-match, stream-ttl, stream-expires-at, "
    b"stream-closed, stream-seq, stream-forked-from, stream-fork-offset, stream-fork-sub-offset, "
    b"stream-profile, stream-retention-seconds, stream-retention-bytes, "
    b"stream-retention-messages, stream-compaction, stream-key, "
    b"producer-id, producer-epoch, producer-seq"
)
_ONE_DAY = b"86400"


async def options(_: Call[Any, Any]) -> PlainAnswer:
    return _told(METHODS)


async def options_of_list(_: Call[Any, Any]) -> PlainAnswer:
    return _told(b"GET, HEAD, OPTIONS")


def _told(methods: bytes) -> PlainAnswer:
    return PlainAnswer(
        204,
        [
            NOSNIFF,
            (b"allow", methods),
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", _TAKEN),
            (b"access-control-max-age", _ONE_DAY),
        ],
    )
