"""Tokens: an id that anybody may see, and a secret of 256 bits of which only a hash is kept.

A plain SHA-256 is enough: nobody can guess 256 random bits, however fast the hash is.
"""

import hashlib
import secrets

_PREFIX = "qbr"
"""Tells people, and programs that look for leaked secrets, what it is."""
ID_BYTES = 6
_SECRET_BYTES = 32


def new_token() -> tuple[str, str, str]:
    """The token itself, which is shown once; its id; and the hash of its secret, in hex."""
    token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    return f"{_PREFIX}_{token_id}_{secret}", token_id, digest(secret)


def split_token(token: str) -> tuple[str, str] | None:
    """Id and secret; None if the text is no token of ours."""
    prefix, _, rest = token.partition("_")
    token_id, _, secret = rest.partition("_")
    is_ours = prefix == _PREFIX and token_id and secret and token.isascii()
    return (token_id, secret) if is_ours else None


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
