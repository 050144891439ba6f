"""Subscriptions themselves: create, show, delete, and the streams that are named."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from queueber.client import AsyncClient
from queueber.gateway.calls import Call
from queueber.gateway.problems import too_busy
from queueber.gateway.routes import Answer, NoQuery
from queueber.gateway.streams.paths import is_stream
from queueber.gateway.streams.subscriptions import patterns, state, wakes
from queueber.gateway.streams.subscriptions.records.positions import NOWHERE, tail_of, tails_of
from queueber.gateway.streams.subscriptions.records.record import LINKS_MAX, Config, Record
from queueber.gateway.streams.subscriptions.records.register import (
    Event,
    Kept,
    Overtaken,
    Register,
    change,
)
from queueber.gateway.streams.subscriptions.refusals import invalid_request, not_found, refusal
from queueber.gateway.streams.subscriptions.requests import (
    StreamsRequest,
    SubscriptionRequest,
    to_config,
    to_id,
    to_streams,
)
from queueber.gateway.streams.subscriptions.state import Subscriptions
from queueber.gateway.streams.subscriptions.webhooks.targets import resolve, to_target

_NAMES_MAX = 100_000
"""Names that are looked through for streams that a pattern matches."""


class Signing(msgspec.Struct):
    kid: str
    jwks_url: str
    alg: str = "ed25519"


class WebhookAnswer(msgspec.Struct):
    url: str
    signing: Signing


class LinkAnswer(msgspec.Struct):
    path: str
    link_type: str
    acked_offset: str


class SubscriptionAnswer(msgspec.Struct):
    id: str
    subscription_id: str
    type: str
    pattern: str | None
    streams: list[LinkAnswer]
    webhook: WebhookAnswer | None
    wake_stream: str | None
    lease_ttl_ms: int
    created_at: str
    status: str
    """`failed` while the last attempt of the webhook failed, and else `active`."""
    description: str | None


async def create(call: Call[NoQuery, SubscriptionRequest]) -> Answer:
    id, config, own = to_id(call.names["subscription"]), to_config(call.body), state.of(call)
    register, created = Register(call.client), False
    kept = await register.read(id)
    if kept is None:
        record = await _new_record(call, own, id, config)
        try:
            kept, created = await register.create(record), True
            own.watcher.changed(kept)
        except Overtaken:
            kept = await register.read(id)
    if kept is None:
        raise too_busy(f"subscription {id!r} was deleted just now; retry")
    if kept.record.config_hash != config.hash:
        raise refusal(
            "SUBSCRIPTION_ALREADY_EXISTS", f"there is a subscription {id!r} that is not like this"
        )
    return Answer(await _shown(own, kept), 201 if created else 200)


async def _new_record(
    call: Call[NoQuery, SubscriptionRequest], own: Subscriptions, id: str, config: Config
) -> Record:
    client = call.client
    if config.webhook_url is not None:
        await _check_url(own, config.webhook_url)
    if config.wake_stream is not None:
        await Register(client).may_change(config.wake_stream)
    await own.keys()
    record = Record(
        id=id,
        type=config.type,
        lease_ttl_ms=config.lease_ttl_ms,
        created_at_ms=own.clock.now_ms(),
        config_hash=config.hash,
        base_url=_base_url(call),
        pattern=config.pattern,
        webhook_url=config.webhook_url,
        wake_stream=config.wake_stream,
        description=config.description,
    )
    record = await _with_streams(client, record, config.streams)
    if config.pattern is None:
        return record
    # What comes later is linked by the gateway itself: its creator must be able to read it.
    for sample in patterns.samples(config.pattern):
        await tail_of(client, sample)
    tails = await tails_of(client, await _matching(client, config.pattern, len(record.links)))
    for path, tail in tails.items():
        if tail is not None:
            record = wakes.link(record, path, tail.end, explicit=False)
    return record


async def _check_url(own: Subscriptions, url: str) -> None:
    target = to_target(url, allows_loopback=own.sender.allows_loopback)
    try:
        await resolve(target, own.sender.resolver)
    except OSError:
        return  # it may be known later; it is checked before each attempt


async def _with_streams(client: AsyncClient, record: Record, paths: tuple[str, ...]) -> Record:
    """With links to these streams, from their ends on; to those that do not exist, too."""
    if len(record.links.keys() | set(paths)) > LINKS_MAX:
        raise invalid_request(f"streams: a subscription has at most {LINKS_MAX}")
    tails = await tails_of(client, [path for path in paths if path not in record.links])
    for path in paths:
        tail = tails.get(path)
        at = NOWHERE if tail is None else tail.end
        record = wakes.link(record, path, at, explicit=True)
    return record


async def _matching(client: AsyncClient, pattern: str, linked: int) -> list[str]:
    found, prefix, count = [], patterns.fixed_prefix(pattern), 0
    async for name in client.topics(prefix):
        count += 1
        if count > _NAMES_MAX:
            raise invalid_request(
                f"pattern: more than {_NAMES_MAX} streams begin with {prefix!r}; choose a longer "
                "beginning"
            )
        if is_stream(name) and patterns.matches(pattern, name):
            found.append(name)
            if linked + len(found) > LINKS_MAX:
                raise invalid_request(
                    f"pattern: it matches more than {LINKS_MAX} streams, the most of a subscription"
                )
    return found


def _base_url(call: Call[Any, Any]) -> str:
    """Where others reach this gateway: as its operator says, or else as the creator does."""
    if call.settings.public_url is not None:
        return call.settings.public_url.rstrip("/")
    host = call.headers.get(b"host", b"").decode("latin-1")
    return f"{call.scope['scheme']}://{host or call.settings.http}"


async def _shown(own: Subscriptions, kept: Kept) -> SubscriptionAnswer:
    record, webhook = kept.record, None
    if record.webhook_url is not None:
        jwks_url = f"{record.base_url}/v1/stream/__ds/jwks.json"
        webhook = WebhookAnswer(record.webhook_url, Signing((await own.keys()).kid, jwks_url))
    created_at = datetime.fromtimestamp(record.created_at_ms / 1000, UTC)
    return SubscriptionAnswer(
        record.id,
        record.id,
        record.type,
        record.pattern,
        [LinkAnswer(path, each.kind, each.acked.token) for path, each in record.links.items()],
        webhook,
        record.wake_stream,
        record.lease_ttl_ms,
        created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        record.status,
        record.description,
    )


async def show(call: Call[NoQuery, None]) -> SubscriptionAnswer:
    id = to_id(call.names["subscription"])
    kept = await Register(call.client).read(id)
    if kept is None:
        raise not_found(id)
    return await _shown(state.of(call), kept)


async def delete(call: Call[NoQuery, None]) -> None:
    id = to_id(call.names["subscription"])
    await Register(call.client).delete(id)
    state.of(call).watcher.forget(id)


async def add_streams(call: Call[NoQuery, StreamsRequest]) -> None:
    paths, client = to_streams(call.body.streams), call.client

    async def decide(record: Record) -> tuple[Record, Event | None, None]:
        return await _with_streams(client, record, paths), None, None

    await _change(call, decide)


async def drop_stream(call: Call[NoQuery, None]) -> None:
    path = call.names["path"].strip("/")

    async def decide(record: Record) -> tuple[Record, Event | None, None]:
        return wakes.unlink(record, path), None, None

    await _change(call, decide)


async def _change(call: Call[Any, Any], decide: Any) -> None:
    kept, _ = await change(Register(call.client), to_id(call.names["subscription"]), decide)
    state.of(call).watcher.changed(kept)
