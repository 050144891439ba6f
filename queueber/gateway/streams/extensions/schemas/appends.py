"""Appends to streams that have a schema.

The server says which version a publication must have been checked against; the gateway checks and
says which version and which topic that was. If either has changed meanwhile, the server refuses and
the gateway begins again. So whichever gateway appends, and whoever sets another schema meanwhile, a
message is stored only if it fits the version that is in force at its offset.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition
from queueber.gateway.calls import Call
from queueber.gateway.problems import Problem, too_busy
from queueber.gateway.streams.extensions.schemas.documents import decode_document
from queueber.gateway.streams.extensions.schemas.rules import Keyed, Rules, with_key

STATE = "stream_schemas"
_TRIES = 5
_STREAMS_MAX = 10_000
_RULES_MAX = 100

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InForce:
    """The schema of a stream, as this gateway last saw it."""

    topic_number: int
    version: int
    rules: Rules | None


NO_SCHEMA = InForce(0, 0, None)


class _Recent(Generic[K, V]):
    """The last ones that were used, so many of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def drop(self, key: K) -> None:
        self._kept.pop(key, None)


class SchemaCache:
    """What a process of the gateway has seen of schemas. It may be old: the server decides."""

    def __init__(self) -> None:
        self._by_path: _Recent[str, InForce] = _Recent(_STREAMS_MAX)
        self._by_document: _Recent[bytes, Rules] = _Recent(_RULES_MAX)

    def known(self, path: str) -> InForce:
        return self._by_path.get(path) or NO_SCHEMA

    def forget(self, path: str) -> None:
        self._by_path.drop(path)

    async def load(self, client: AsyncClient, path: str, version: int) -> InForce:
        """The schema of a stream that has this version."""
        schema = await client.topic(path, must_exist=True).schema(version)
        rules = self._by_document.get(schema.document)
        if rules is None:
            document = decode_document(schema.document)
            if document is None:
                raise not_of_this_registry(path, version)
            rules = Rules(document)
            self._by_document.put(schema.document, rules)
        loaded = InForce(schema.topic_number, version, rules)
        self._by_path.put(path, loaded)
        return loaded


def cache_of(call: Call[Any, Any]) -> SchemaCache:
    found = call.state.get(STATE)
    if found is None:
        found = call.state[STATE] = SchemaCache()
    assert isinstance(found, SchemaCache)
    return found


Publish = Callable[[Keyed, InForce], Awaitable[T]]
"""Publishes messages, with the version that they were checked against and its topic's number."""


async def publish_checked(
    call: Call[Any, Any], path: str, payloads: Sequence[bytes], key: str, publish: Publish[T]
) -> T:
    """Publish messages that fit the schema in force; raises a `Problem` if one does not.

    What else the server would refuse goes before that: it is asked without a schema first, unless
    this process knows the schema and all messages fit it.
    """
    cache = cache_of(call)
    in_force = cache.known(path)
    messages = with_key(payloads, key)
    if in_force.rules is not None:
        try:
            messages = await in_force.rules.apply(payloads, key)
        except Problem:
            in_force = NO_SCHEMA
    for _ in range(_TRIES):
        try:
            return await publish(messages, in_force)
        except FailedPrecondition as error:
            if not {"schema_version", "topic_number"} & set(error.numbers):
                raise
            version = error.numbers.get("schema_version", 0)
        cache.forget(path)
        in_force, messages = NO_SCHEMA, with_key(payloads, key)
        if version:
            in_force = await cache.load(call.client, path, version)
            assert in_force.rules is not None
            messages = await in_force.rules.apply(payloads, key)
    raise too_busy(f"stream: the schema of {path} changes too often; retry")


def not_of_this_registry(path: str, version: int) -> Problem:
    return Problem(
        409,
        "FAILED_PRECONDITION",
        f"stream: {path} has schema version {version} of another program, which the gateway "
        "cannot check; publish with that program",
    )
