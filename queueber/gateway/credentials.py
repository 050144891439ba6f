"""The `Authorization` header of a request as the credential of its caller."""

import base64
import binascii
from collections.abc import Mapping

from queueber.errors import Unauthenticated
from queueber.model import Credential

_HEADER_BYTES_MAX = 16 * 1024


def credential_of(headers: Mapping[bytes, bytes]) -> Credential | None:
    """The caller's credential; None if the request has none. Raises `Unauthenticated`."""
    given = headers.get(b"authorization")
    if given is None:
        return None
    scheme, _, value = given.partition(b" ")
    value = value.strip()
    if len(given) > _HEADER_BYTES_MAX:
        raise Unauthenticated(
            f"authorization: it has {len(given)} bytes; the limit is {_HEADER_BYTES_MAX}"
        )
    try:
        match scheme.lower():
            case b"bearer" if value:
                return Credential(token=value.decode("ascii"))
            case b"basic":
                user, colon, password = base64.b64decode(value, validate=True).partition(b":")
                if colon and user and password:
                    return Credential(user=user.decode(), password=password.decode())
    except (UnicodeDecodeError, binascii.Error):
        pass
    raise Unauthenticated("authorization: it is neither 'Bearer TOKEN' nor 'Basic ...'")
