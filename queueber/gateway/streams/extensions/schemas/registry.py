"""The schema registry: show the versions of a stream's schema, and set the next one."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from queueber.client import AsyncTopic
from queueber.errors import FailedPrecondition
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem, invalid, too_busy
from queueber.gateway.routes import Answer
from queueber.gateway.streams.content import is_json
from queueber.gateway.streams.extensions.details import Place, place
from queueber.gateway.streams.extensions.schemas.appends import not_of_this_registry
from queueber.gateway.streams.extensions.schemas.compiled import decode_schema
from queueber.gateway.streams.extensions.schemas.documents import (
    Document,
    decode_document,
    document_in_force,
    encode_document,
)
from queueber.gateway.streams.extensions.schemas.rules import Rules
from queueber.gateway.streams.paths import stream_path
from queueber.gateway.streams.stream_info import described, tail_of, type_of
from queueber.limits import MIB, SCHEMA_VERSION_MAX
from queueber.model import TopicInfo, TopicSchema

CHECKED_MESSAGES_MAX = 10_000
CHECKED_BYTES_MAX = 16 * MIB
"""What a stream may have when it gets its first schema: so much is read and checked."""
_TRIES = 5
_CHANGED = {"schema_version", "tail", "topic_number"}
"""What an error of the server names if the stream has changed since we looked."""


class SchemaQuery(msgspec.Struct, forbid_unknown_fields=True):
    version: Annotated[int, Meta(ge=1, le=SCHEMA_VERSION_MAX)] | None = None
    """If it is left out, the version in force."""


class SchemaVersion(msgspec.Struct):
    version: int
    from_offset: Place
    """The first message that had to fit it."""
    at_ms: int


class SchemaAnswer(msgspec.Struct):
    version: int
    from_offset: Place
    at_ms: int
    schema: Any
    """The JSON Schema that was set; null: the profile's is all that there is."""
    profile: str
    profile_schema: Any
    """What messages must fit beside it."""
    versions: list[SchemaVersion]
    """All that were set."""


async def show_schema(call: Call[SchemaQuery, None]) -> Answer:
    info = await described(call.client, stream_path(call.names))
    topic = call.client.topic(info.name, must_exist=True)
    wanted = call.query.version or info.config.settings.schema_version
    if not wanted:
        raise Problem(404, "NOT_FOUND", f"schema: {info.name} has none")
    found, versions = await topic.schema(wanted), await topic.schemas()
    document = decode_document(found.document)
    if document is None:
        raise not_of_this_registry(info.name, wanted)
    answer = SchemaAnswer(
        **_shown(info, found),
        schema=document.schema,
        profile=document.profile,
        profile_schema=document.base,
        versions=[SchemaVersion(**_shown(info, each)) for each in versions],
    )
    return Answer(answer, 200, {"etag": f'"{found.version}"'})


def _shown(info: TopicInfo, schema: TopicSchema) -> dict[str, Any]:
    return {
        "version": schema.version,
        "from_offset": place(info.origin, schema.from_offset),
        "at_ms": schema.at_ms,
    }


# --- setting --------------------------------------------------------------------------------------


async def set_schema(call: Call[Any, Any]) -> Answer:
    """201 and the new version; 200 if the schema is in force already."""
    schema, path = decode_schema(call.raw or b""), stream_path(call.names)
    wanted = _wanted_version(call)
    for _ in range(_TRIES):
        info = await described(call.client, path)
        if not is_json(type_of(info)):
            raise _refused(409, f"schema: {path} is {type_of(info)}; only JSON can have a schema")
        in_force, before = await document_in_force(call.client, info)
        version = info.config.settings.schema_version
        if wanted not in (None, version):
            raise _refused(412, f"if-match: the version in force is {version}", version)
        if version and before is None:
            raise not_of_this_registry(path, version)
        if in_force is not None and in_force.version != version:
            continue  # it was set while we looked
        document = _next_document(before, schema)
        rules = Rules(document)
        if in_force is not None and document == before:
            return _answer(info, in_force, 200)
        try:
            return _answer(info, await _put(call, info, rules, version), 201)
        except FailedPrecondition as error:
            if "closed" in error.numbers or not _CHANGED & set(error.numbers):
                raise
    raise too_busy(f"schema: {path} changes too fast; retry")


def _next_document(before: Document | None, schema: object) -> Document:
    found = before or Document()
    return Document(found.profile, found.base, schema, found.key)


async def _put(call: Call[Any, Any], info: TopicInfo, rules: Rules, version: int) -> TopicSchema:
    topic = call.client.topic(info.name, must_exist=True)
    content = encode_document(rules.document)
    if version:
        return await topic.set_schema(content, expected_version=version, topic_number=info.number)
    tail = await _check_stored(topic, info, rules)
    return await topic.set_schema(
        content, expected_version=0, expected_offset=tail, topic_number=info.number
    )


async def _check_stored(topic: AsyncTopic, info: TopicInfo, rules: Rules) -> int:
    """Every message that the stream has fits its first schema; where it ended then."""
    log = info.partitions[0]
    if log.next_offset - log.first_offset > CHECKED_MESSAGES_MAX:
        raise _too_much(info.name)
    at, size = log.first_offset, 0
    while at < tail_of(info):
        page = await topic.read(0, start=at, moves=True, limit=1_000, bytes=MIB)
        payloads = [each for each in page.payloads if each]
        size += sum(map(len, payloads))
        if size > CHECKED_BYTES_MAX:
            raise _too_much(info.name)
        try:
            await rules.apply(payloads, "")
        except Problem as problem:
            raise _refused(
                409,
                f"schema: {info.name} has messages that do not fit it, from offset {at} on: "
                f"{problem.detail.removeprefix('body: ')}",
            ) from None
        if page.next_offset <= at:
            break
        at = page.next_offset
    return max(at, tail_of(info))


def _too_much(path: str) -> Problem:
    return _refused(
        409,
        f"schema: {path} has no schema and more than {CHECKED_MESSAGES_MAX} messages or "
        f"{CHECKED_BYTES_MAX} bytes, which would have to be checked; fork it, or set the first "
        "schema when a stream is new",
    )


def _wanted_version(call: Call[Any, Any]) -> int | None:
    """The version that must be in force; None: any."""
    if call.headers.get(b"if-none-match", b"").strip() == b"*":
        return 0
    given = call.headers.get(b"if-match")
    if given is None or given.strip() == b"*":
        return None
    text = given.strip().strip(b'"')
    if not text.isdigit() or len(text) > 10:
        raise invalid(f'if-match: {given[:50]!r} is no version such as "3"')
    return int(text)


def _refused(status: int, detail: str, version: int | None = None) -> Problem:
    numbers = {} if version is None else {"schema_version": version}
    return Problem(status, "FAILED_PRECONDITION", detail, numbers=numbers)


def _answer(info: TopicInfo, schema: TopicSchema, status: int) -> Answer:
    value = SchemaVersion(**_shown(info, schema))
    return Answer(value, status, {"etag": f'"{schema.version}"'})
