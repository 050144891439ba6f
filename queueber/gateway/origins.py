"""Requests that a page of another site had a browser send are refused.

A browser sends cookies, addresses on loopback and simple requests for any page. A program sends no
`Origin`, and a page of the gateway itself sends the gateway's.
"""

from collections.abc import Mapping

from queueber.gateway.problems import Problem


def check_origin(headers: Mapping[bytes, bytes]) -> None:
    """Raise a `Problem` if another site's page is behind the request."""
    origin = headers.get(b"origin")
    if origin is None:
        return
    host = headers.get(b"host", b"")
    if origin.partition(b"://")[2].lower() != host.lower():
        shown = origin[:200].decode("latin-1")
        raise Problem(
            403, "PERMISSION_DENIED", f"origin: pages of {shown} may not use this gateway"
        )
