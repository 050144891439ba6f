"""Requests that a page of another site had a browser send are refused, unless it may use streams.

A browser sends requests to any address for any page, also to loopback. A program sends no `Origin`,
and a page of the gateway itself sends the gateway's. The owner of a name may let it point to
loopback once its page is loaded: to the browser that page is then the gateway's own. So whoever has
no credential must have asked for an address, or for `localhost`, which nobody can let point
elsewhere.

Streams are made for pages: an operator may name the origins whose pages use them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address

from queueber.errors import Unauthenticated
from queueber.gateway.credentials import credential_of
from queueber.gateway.problems import Problem
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential

ANY_ORIGIN = "*"
_HOSTS_MAX = 256
"""How many hosts are remembered: callers name few, and every request does."""
_SHOWN_TO_PAGES = (
    b"stream-next-offset, stream-cursor, stream-up-to-date, stream-closed, stream-ttl, "
    b"stream-expires-at, stream-sse-data-encoding, producer-epoch, producer-seq, "
    b"producer-expected-seq, producer-received-seq, etag, location, retry-after"
)

Headers = list[tuple[bytes, bytes]]


def check_origin(headers: Mapping[bytes, bytes], allowed: Sequence[str] = ()) -> None:
    """Raise a `Problem` if the page of a site that is not allowed is behind the request."""
    origin = headers.get(b"origin")
    if origin is None or _is_allowed(origin, allowed):
        return
    host = headers.get(b"host", b"")
    _, scheme_ends, origin_host = origin.partition(b"://")
    if not scheme_ends or origin_host.lower() != host.lower():
        shown = origin[:200].decode("latin-1")
        raise Problem(
            403, "PERMISSION_DENIED", f"origin: pages of {shown} may not use this gateway"
        )


def page_headers(headers: Mapping[bytes, bytes], allowed: Sequence[str]) -> Headers:
    """What lets the browser show an answer to the page that asked, if its origin is allowed."""
    policy = b"cross-origin" if allowed else b"same-origin"
    found: Headers = [(b"cross-origin-resource-policy", policy)]
    if allowed:
        found.append((b"access-control-expose-headers", _SHOWN_TO_PAGES))
    if ANY_ORIGIN in allowed:
        found.append((b"access-control-allow-origin", b"*"))
    elif allowed:
        # Another origin gets another answer: caches must know.
        found.append((b"vary", b"origin"))
        if (origin := headers.get(b"origin")) is not None and _is_allowed(origin, allowed):
            found.append((b"access-control-allow-origin", origin))
    return found


def _is_allowed(origin: bytes, allowed: Sequence[str]) -> bool:
    return ANY_ORIGIN in allowed or origin.decode("latin-1").lower() in allowed


def caller_of(headers: Mapping[bytes, bytes], settings: GatewaySettings) -> Credential | None:
    """The caller's credential; None if the request has none and needs none.

    Raises `Unauthenticated` if it is wrong, or missing from a request for a name.
    """
    credential = credential_of(headers)
    if credential is None and not settings.insecure and _is_name(headers.get(b"host", b"")):
        shown = headers[b"host"][:200].decode("latin-1")
        raise Unauthenticated(
            f"host: a request for {shown!r} needs a credential, for any site may let a name point "
            "here; ask for 127.0.0.1 or localhost, or start the gateway with --insecure"
        )
    return credential


@lru_cache(maxsize=_HOSTS_MAX)
def _is_name(host: bytes) -> bool:
    """Whether a host is a name that may point anywhere. Browsers never leave the host out."""
    name = host.decode("latin-1").lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if not name or name == "localhost" or name.endswith(".localhost"):
        return False
    try:
        ip_address(name)
    except ValueError:
        return True
    return False
