"""What callers send about subscriptions, and what of it is refused."""

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from queueber.gateway.calls import Call
from queueber.gateway.routes import Handler
from queueber.gateway.streams.paths import is_stream
from queueber.gateway.streams.subscriptions import patterns
from queueber.gateway.streams.subscriptions.records.record import LINKS_MAX, Config
from queueber.gateway.streams.subscriptions.refusals import Refusal, invalid_request
from queueber.limits import MINUTE_MS, SECOND_MS

LEASE_MS = 30 * SECOND_MS
LEASE_MS_MIN = SECOND_MS
LEASE_MS_MAX = 10 * MINUTE_MS
DESCRIPTION_CHARACTERS_MAX = 1_000
WORKER_CHARACTERS_MAX = 255
ACKS_MAX = LINKS_MAX
_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")


class WebhookRequest(msgspec.Struct):
    url: str


class SubscriptionRequest(msgspec.Struct):
    """A subscription. At least one of `pattern` and `streams` is needed."""

    type: Annotated[str, Meta(description="`webhook` or `pull-wake`.")]
    pattern: Annotated[
        str | None,
        Meta(description="Streams whose paths match: `*` is one segment, `**` any number."),
    ] = None
    streams: Annotated[list[str] | None, Meta(description="Streams that are named.")] = None
    webhook: Annotated[WebhookRequest | None, Meta(description="Of a `webhook`.")] = None
    wake_stream: Annotated[
        str | None, Meta(description="Of a `pull-wake`: the stream that tells of wakes.")
    ] = None
    lease_ttl_ms: Annotated[
        int, Meta(description=f"{LEASE_MS_MIN} to {LEASE_MS_MAX} milliseconds.")
    ] = LEASE_MS
    description: str | None = None


class StreamsRequest(msgspec.Struct):
    streams: list[str]


class WakeClaimRequest(msgspec.Struct):
    worker: Annotated[str, Meta(description="Who claims; others are told this name.")]


class WakeAck(msgspec.Struct):
    """A worker is done with what is before `offset`."""

    offset: str
    stream: str | None = None
    path: Annotated[str | None, Meta(description="Another name for `stream`.")] = None

    @property
    def of(self) -> str:
        return (self.stream or self.path or "").strip("/")


class WakeAckRequest(msgspec.Struct):
    """Without `done` the lease is extended."""

    wake_id: str
    generation: int
    acks: list[WakeAck] = []
    done: bool = False


class WakeReleaseRequest(msgspec.Struct):
    wake_id: str
    generation: int


Asked = TypeVar("Asked", bound=msgspec.Struct)


def taking(asked: type[Asked], handle: Callable[[Call[Any, Asked]], Awaitable[Any]]) -> Handler:
    """A handler of a plain route whose body is JSON of that struct."""

    @wraps(handle)
    async def decode_and_handle(call: Call[Any, Any]) -> Any:
        try:
            call.body = msgspec.json.decode(call.raw or b"{}", type=asked)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise invalid_request(f"body: {error}") from None
        return await handle(call)

    return decode_and_handle


def to_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise invalid_request(
            "id: it has 1 to 200 letters of ASCII, digits, dots, dashes and underscores"
        )
    return text


def to_config(asked: SubscriptionRequest) -> Config:
    """What was asked for, checked. A webhook's URL is checked where it is used."""
    pattern = to_pattern(asked.pattern) if asked.pattern else None
    streams = to_streams(asked.streams or [])
    if pattern is None and not streams:
        raise invalid_request("pattern: it is missing, and so is streams; one of them is needed")
    if not LEASE_MS_MIN <= asked.lease_ttl_ms <= LEASE_MS_MAX:
        raise invalid_request(
            f"lease_ttl_ms: {asked.lease_ttl_ms} is outside {LEASE_MS_MIN} to {LEASE_MS_MAX}"
        )
    if len(asked.description or "") > DESCRIPTION_CHARACTERS_MAX:
        raise invalid_request(
            f"description: it has more than {DESCRIPTION_CHARACTERS_MAX} characters"
        )
    url, wake_stream = None, None
    match asked.type:
        case "webhook":
            if asked.webhook is None or not asked.webhook.url:
                raise invalid_request("webhook.url: it is missing, and a webhook needs it")
            url = asked.webhook.url
        case "pull-wake":
            if not asked.wake_stream:
                raise invalid_request("wake_stream: it is missing, and a pull-wake needs it")
            (wake_stream,) = to_streams([asked.wake_stream], "wake_stream")
        case _:
            raise invalid_request(f"type: {asked.type[:50]!r} is neither webhook nor pull-wake")
    lease, text = asked.lease_ttl_ms, asked.description
    kind = "webhook" if url else "pull-wake"
    return Config(kind, pattern, streams, url, wake_stream, lease, text)  # type: ignore[arg-type]


def to_pattern(text: str) -> str:
    pattern = patterns.to_pattern(text)
    if pattern is None:
        raise invalid_request(
            f"pattern: {text[:100]!r} is not one; segments are names, '*' or '**', such as events/*"
        )
    return pattern


def to_streams(paths: Iterable[str], field: str = "streams") -> tuple[str, ...]:
    """Paths without slashes at their ends, each once."""
    found = {path.strip("/"): None for path in paths}
    if len(found) > LINKS_MAX:
        raise invalid_request(f"{field}: {len(found)} are named; the limit is {LINKS_MAX}")
    for path in found:
        if not is_stream(path):
            raise _no_stream(field, path)
    return tuple(found)


def _no_stream(field: str, path: str) -> Refusal:
    return invalid_request(
        f"{field}: {path[:100]!r} is not the path of a stream: 1 to 255 letters of ASCII, digits "
        "and ./_- , not beginning with __ds/ or queue/"
    )


def to_worker(text: str) -> str:
    if not 1 <= len(text) <= WORKER_CHARACTERS_MAX or not text.isprintable():
        raise invalid_request(
            f"worker: it has 1 to {WORKER_CHARACTERS_MAX} characters that can be printed"
        )
    return text


def check_acks(acks: list[WakeAck]) -> None:
    if len(acks) > ACKS_MAX:
        raise invalid_request(f"acks: there are {len(acks)}; the limit is {ACKS_MAX}")
