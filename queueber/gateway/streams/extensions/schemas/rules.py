"""The rules of one document: what a message must be like, and what its key is."""

import asyncio
from collections.abc import Sequence

from queueber.gateway.problems import Problem, invalid
from queueber.gateway.streams.extensions.schemas.compiled import (
    CompiledSchema,
    Misfit,
    decode_json,
)
from queueber.gateway.streams.extensions.schemas.documents import Document
from queueber.gateway.streams.extensions.schemas.nesting import check_nesting
from queueber.limits import KEY_BYTES_MAX, MIB

_TURN_BYTES = MIB
"""So much is checked before other requests have their turn."""

Keyed = list[bytes] | list[tuple[bytes, str]]


class Rules:
    """What the messages of a stream must be like."""

    def __init__(self, document: Document) -> None:
        self.document = document
        parts = (document.base, document.schema)
        self._schemas = [CompiledSchema(each) for each in parts if each is not None]

    async def apply(self, payloads: Sequence[bytes], key: str) -> Keyed:
        """The messages with their keys; raises a `Problem` that says which does not fit, and why.

        `key` is the one that the caller gives, or "".
        """
        if key and self.document.key:
            raise invalid(
                f"stream-key: the profile {self.document.profile} makes keys of messages itself"
            )
        keys, checked = [], 0
        for at, payload in enumerate(payloads):
            keys.append(self._check(at, payload))
            checked += len(payload)
            if checked > _TURN_BYTES:
                checked = 0
                await asyncio.sleep(0)
        if not self.document.key:
            return with_key(payloads, key)
        return list(zip(payloads, keys, strict=True))

    def _check(self, at: int, payload: bytes) -> str:
        what = f"body: message {at}"
        value = decode_json(payload, what)
        check_nesting(payload, value, what)
        for schema in self._schemas:
            try:
                schema.check(payload, value)
            except Misfit as misfit:
                raise invalid(f"{what}: {misfit}") from None
        return _key_of(value, self.document.key, what)


def with_key(payloads: Sequence[bytes], key: str) -> Keyed:
    """The messages with a key that the caller gives, which is that of one message."""
    if not key:
        return list(payloads)
    if len(payloads) > 1:
        raise invalid(
            f"stream-key: the body has {len(payloads)} messages, and it is the key of one; send "
            "one request for each"
        )
    return [(payload, key) for payload in payloads]


def _key_of(value: object, fields: Sequence[str], what: str) -> str:
    """ "" of a message that lacks one of the fields: it replaces none, and none replaces it."""
    if not isinstance(value, dict):
        return ""
    parts = [value.get(name) for name in fields]
    texts = [each for each in parts if isinstance(each, str)]
    if not fields or len(texts) < len(parts):
        return ""
    # No two lists of parts make the same key.
    first = [each.replace("%", "%25").replace("/", "%2F") for each in texts[:-1]]
    key = "/".join([*first, texts[-1]])
    if len(key.encode()) > KEY_BYTES_MAX:
        detail = f"{what}: {' and '.join(fields)} have more than {KEY_BYTES_MAX} bytes together"
        raise Problem(413, "RESOURCE_EXHAUSTED", detail)
    return key
