"""Where records are kept: the last message of a topic for each subscription.

A change is published only if the topic still ends where the record was read. So several gateways
may change a subscription, and of two changes at one time one is made again.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition, NotFound, OutcomeUnknown
from queueber.gateway.problems import Problem, too_busy
from queueber.gateway.streams.subscriptions.records.record import Record, decode, encode
from queueber.gateway.streams.subscriptions.refusals import not_found, refusal

PREFIX = "__ds/subscriptions/"
SUBSCRIPTIONS_MAX = 1_000
_TRIES = 30
_PAUSE_SECONDS_MAX = 0.05

T = TypeVar("T")


class Overtaken(Exception):
    """Somebody else has changed the record, and nothing has happened."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as it was read, and where its topic ended then."""

    record: Record
    end_offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """A message that is published in the same step as the record."""

    stream: str
    payload: bytes


class Register:
    """The records, seen with the rights of a client."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def ids(self) -> list[str]:
        found: list[str] = []
        async for name in self._client.topics(PREFIX):
            found.append(name.removeprefix(PREFIX))
            if len(found) == SUBSCRIPTIONS_MAX:
                break
        return found

    async def read(self, id: str) -> Kept | None:
        """None: there is none."""
        topic = self._client.topic(PREFIX + id, must_exist=True)
        was_missing = False
        for _ in range(_TRIES):
            try:
                page = await topic.read(last=1)
            except NotFound:
                if was_missing:
                    return None
                was_missing = True  # it may have been created again, which a client is told once
                continue
            if page.payloads:
                return Kept(_decoded(id, page.payloads[-1]), page.end_offset)
            if not page.end_offset:
                return None
            # The record was replaced between finding and reading it.
        raise too_busy(f"subscription {id!r} is changed by others all the time; retry")

    async def create(self, record: Record) -> Kept:
        """Raises `Overtaken` if there is one."""
        if len(await self.ids()) >= SUBSCRIPTIONS_MAX:
            raise refusal("TOO_MANY", f"there are {SUBSCRIPTIONS_MAX} subscriptions, the limit")
        await self._client.create_topic(
            PREFIX + record.id, retention_messages=1, content_type="application/json"
        )
        return await self._write(record, 0, None)

    async def replace(self, kept: Kept, record: Record, event: Event | None = None) -> Kept:
        """Put the record in the place of the one that was read, or raise `Overtaken`."""
        return await self._write(record, kept.end_offset, event)

    async def _write(self, record: Record, end_offset: int, event: Event | None) -> Kept:
        record = msgspec.structs.replace(record, change=secrets.token_hex(8))
        name, payload = PREFIX + record.id, encode(record)
        try:
            if event is None:
                topic = self._client.topic(name, must_exist=True)
                await topic.publish([payload], expected_offset=end_offset)
            else:
                async with self._client.together() as steps:
                    steps.publish(name, [payload], expected_offset=end_offset)
                    steps.publish(event.stream, [event.payload])
        except (FailedPrecondition, NotFound):
            raise Overtaken from None
        except OutcomeUnknown:
            found = await self.read(record.id)
            if found is None or found.record.change != record.change:
                raise Overtaken from None
            return found
        return Kept(record, end_offset + 1)

    async def delete(self, id: str) -> bool:
        return await self._client.delete_topic(PREFIX + id)

    async def may_change(self, name: str) -> None:
        """Raise `PermissionDenied` if the client may not publish to a topic."""
        topic = self._client.topic(name, must_exist=True)
        try:
            await topic.publish([b"-"], expected_offset=(1 << 62))
        except (FailedPrecondition, NotFound):
            return


def _decoded(id: str, payload: bytes) -> Record:
    try:
        return decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Somebody has published to the topic of the register.
        raise Problem(
            500, "INTERNAL", f"the record of subscription {id!r} cannot be read; delete it"
        ) from None


async def change(
    register: Register,
    id: str,
    decide: Callable[[Record], Awaitable[tuple[Record, Event | None, T]]],
) -> tuple[Kept, T]:
    """Change a record as `decide` says, again if somebody else was faster.

    `decide` gets the present record, and returns the new one, a message that goes with it, and what
    to answer. What it raises ends the change.
    """
    for _ in range(_TRIES):
        kept = await register.read(id)
        if kept is None:
            raise not_found(id)
        record, event, answer = await decide(kept.record)
        try:
            return await register.replace(kept, record, event), answer
        except Overtaken:
            await asyncio.sleep(random.random() * _PAUSE_SECONDS_MAX)
    raise too_busy(f"subscription {id!r} is changed by others all the time; retry")
