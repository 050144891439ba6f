"""What the server keeps of a stream's schema: the profile, its own schema, that of the user."""

import msgspec

from queueber.client import AsyncClient
from queueber.errors import NotFound
from queueber.model import TopicInfo, TopicSchema

GENERIC = "generic"


class Document(msgspec.Struct, omit_defaults=True):
    """The document of one version; whole, so that a later gateway checks as this one does."""

    profile: str = GENERIC
    base: object = None
    """The schema of the profile."""
    schema: object = None
    """The schema that a user has set."""
    key: tuple[str, ...] = ()
    """The fields of a message that make its key, of a profile that has one."""


_decode = msgspec.json.Decoder(Document).decode


def encode_document(document: Document) -> bytes:
    return msgspec.json.encode(document)


def decode_document(content: bytes) -> Document | None:
    """None: another program has set it, and only that one knows how to read it."""
    try:
        return _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


async def document_in_force(
    client: AsyncClient, info: TopicInfo
) -> tuple[TopicSchema | None, Document | None]:
    """The schema that a stream has now; None and None if it has none, or not of this registry."""
    if not info.config.settings.schema_version:
        return None, None
    try:
        schema = await client.topic(info.name, must_exist=True).schema()
    except NotFound:
        return None, None
    return schema, decode_document(schema.document)
