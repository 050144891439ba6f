"""What workers do: claim a wake, acknowledge streams, end the wake or give it back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery
from queueber.gateway.streams.subscriptions import state, wakes
from queueber.gateway.streams.subscriptions.next_wake import settle
from queueber.gateway.streams.subscriptions.records.positions import Position, tails_of, to_position
from queueber.gateway.streams.subscriptions.records.record import Kind, Record
from queueber.gateway.streams.subscriptions.records.register import PREFIX, Event, Register, change
from queueber.gateway.streams.subscriptions.refusals import Refusal, invalid_request, refusal
from queueber.gateway.streams.subscriptions.requests import (
    WakeAck,
    WakeAckRequest,
    WakeClaimRequest,
    WakeReleaseRequest,
    check_acks,
    to_id,
    to_worker,
)
from queueber.gateway.streams.subscriptions.wake_tokens import (
    WakeToken,
    check_wake,
    make_token,
    to_wake_token,
)


class WakeClaimAnswer(msgspec.Struct):
    wake_id: str
    generation: int
    token: str
    streams: list[wakes.StreamState]
    lease_ttl_ms: int


class WakeAckAnswer(msgspec.Struct):
    ok: bool
    next_wake: bool
    """Whether the next wake has begun: messages are pending."""


async def claim(call: Call[NoQuery, WakeClaimRequest]) -> WakeClaimAnswer:
    id, worker, own = to_id(call.names["subscription"]), to_worker(call.body.worker), state.of(call)
    client, register = call.client, Register(call.client)

    async def decide(record: Record) -> tuple[Record, Event | None, WakeClaimAnswer]:
        keys, now_ms = await own.keys(), own.clock.now_ms()
        _check_kind(record, "pull-wake")
        wake = record.wake
        if wake is not None and wake.holder and not wakes.is_over(wake, now_ms):
            # Only who might claim it learns who has.
            await register.may_change(PREFIX + id)
            raise refusal(
                "ALREADY_CLAIMED",
                f"worker {wake.holder!r} has claimed it",
                current_holder=wake.holder,
                generation=record.generation,
            )
        record = await own.watcher.with_new_links(client, record)
        tails = await tails_of(client, record.links)
        record = wakes.follow(record, tails)
        if not wakes.pending(record, tails):
            await register.may_change(PREFIX + id)
            raise refusal("NO_PENDING_WORK", "all messages of its streams are acknowledged")
        claimed = wakes.claim(record, worker, tails, now_ms)
        assert claimed.wake is not None
        streams = wakes.states(claimed, claimed.wake.snapshot)
        token = make_token(keys.token_key, claimed)
        answer = WakeClaimAnswer(
            claimed.wake.id, claimed.generation, token, streams, claimed.lease_ttl_ms
        )
        return claimed, None, answer

    kept, answer = await change(register, id, decide)
    own.watcher.lookout.see(kept.record)
    own.watcher.look_soon(id)
    return answer


async def ack(call: Call[NoQuery, WakeAckRequest]) -> WakeAckAnswer:
    return await _acknowledge(call, "pull-wake")


async def callback(call: Call[NoQuery, WakeAckRequest]) -> WakeAckAnswer:
    return await _acknowledge(call, "webhook")


async def _acknowledge(call: Call[NoQuery, WakeAckRequest], kind: Kind) -> WakeAckAnswer:
    body, own = call.body, state.of(call)
    check_acks(body.acks)
    token = await _checked_token(call)
    async with own.own_client() as client:

        async def decide(record: Record) -> tuple[Record, Event | None, WakeAckAnswer]:
            now_ms = own.clock.now_ms()
            _check(record, kind, token, body, now_ms)
            paths = record.links if body.done else {each.of for each in body.acks} & {*record.links}
            tails = await tails_of(client, paths)
            record = wakes.follow(record, tails)
            acked = wakes.acknowledge(record, _checked(record, body.acks, tails))
            extended = wakes.extend(acked, now_ms)
            if not body.done:
                return extended, None, WakeAckAnswer(ok=True, next_wake=False)
            settled, event = await settle(client, extended, tails, now_ms)
            return settled, event, WakeAckAnswer(ok=True, next_wake=settled.wake is not None)

        kept, answer = await change(Register(client), to_id(call.names["subscription"]), decide)
    own.watcher.changed(kept)
    return answer


async def release(call: Call[NoQuery, WakeReleaseRequest]) -> None:
    body, own = call.body, state.of(call)
    token = await _checked_token(call)
    async with own.own_client() as client:

        async def decide(record: Record) -> tuple[Record, Event | None, None]:
            now_ms = own.clock.now_ms()
            _check(record, "pull-wake", token, body, now_ms)
            tails = await tails_of(client, record.links)
            return *await settle(client, record, tails, now_ms), None

        kept, _ = await change(Register(client), to_id(call.names["subscription"]), decide)
    own.watcher.changed(kept)


# --- checks ---------------------------------------------------------------------------------------


async def _checked_token(call: Call[Any, Any]) -> WakeToken:
    """The token of the request. The server is not asked for a wrong one."""
    scheme, _, token = call.headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise refusal("TOKEN_INVALID", "authorization: send 'Bearer TOKEN', the token of the wake")
    own, text = state.of(call), token.strip().decode("latin-1")
    key = (await own.keys()).token_key
    return to_wake_token(key, to_id(call.names["subscription"]), text, now_ms=own.clock.now_ms())


def _check(
    record: Record,
    kind: Kind,
    token: WakeToken,
    body: WakeAckRequest | WakeReleaseRequest,
    now_ms: int,
) -> None:
    _check_kind(record, kind)
    check_wake(record, token, wake_id=body.wake_id, generation=body.generation, now_ms=now_ms)


def _check_kind(record: Record, kind: Kind) -> None:
    if record.type != kind:
        raise invalid_request(f"this is for subscriptions of type {kind}; it is a {record.type}")


def _checked(record: Record, acks: list[WakeAck], tails: wakes.Tails) -> Mapping[str, Position]:
    """Where each stream is acknowledged up to. Nothing happens if one of them is wrong."""
    found: dict[str, Position] = {}
    for each in acks:
        path, link, tail = each.of, record.links.get(each.of), tails.get(each.of)
        if link is None:
            raise _wrong(path, "it is not a stream of the subscription")
        at = to_position(each.offset)
        if at is None:
            raise _wrong(path, f"{each.offset[:50]!r} is not an offset that was given")
        if at.origin == 0:
            at = Position(link.acked.origin, at.offset)
        if at.origin != link.acked.origin:
            raise _wrong(path, f"{each.offset} is of a stream that was deleted")
        if at < link.acked:
            raise _wrong(path, f"{each.offset} is behind {link.acked.token}, which is acknowledged")
        if tail is None or at > tail.end:
            raise _wrong(path, f"{each.offset} is beyond the end of the stream")
        found[path] = max(at, found.get(path, at))
    return found


def _wrong(path: str, why: str) -> Refusal:
    return refusal("INVALID_OFFSET", f"acks: {path[:100]!r}: {why}")
