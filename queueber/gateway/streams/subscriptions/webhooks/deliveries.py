"""Webhooks under way: a bounded number, each ended by what its answer says."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from queueber.client import AsyncClient
from queueber.clock import Clock
from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.problems import Problem
from queueber.gateway.streams.subscriptions import wakes
from queueber.gateway.streams.subscriptions.next_wake import settle
from queueber.gateway.streams.subscriptions.records.positions import tails_of
from queueber.gateway.streams.subscriptions.records.record import Record
from queueber.gateway.streams.subscriptions.records.register import Event, Kept, Register, change
from queueber.gateway.streams.subscriptions.webhooks.sender import Outcome, Sender, Sent, backoff_ms
from queueber.gateway.streams.subscriptions.webhooks.signing import SigningKeys

DELIVERIES_MAX = 32
"""Of one process. What is due beyond waits for one of them to end."""


class _Ended(Exception):
    """The wake is over already: its worker called back, or its lease has ended."""


class Deliveries:
    def __init__(
        self,
        borrow: Callable[[], AbstractAsyncContextManager[AsyncClient]],
        clock: Clock,
        sender: Sender,
        keys: Callable[[], Awaitable[SigningKeys]],
    ) -> None:
        self._borrow = borrow
        self._clock = clock
        self._sender = sender
        self._keys = keys
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, Callable[[str], None]] = {}
        self.settled: Callable[[Kept], None] = lambda kept: None
        """Told of each record that an answer has changed."""

    @property
    def is_full(self) -> bool:
        return len(self._running) >= DELIVERIES_MAX

    def wait(self, id: str, turn: Callable[[str], None]) -> None:
        """Call `turn` when another delivery has ended."""
        self._waiting[id] = turn

    def begin(self, record: Record) -> None:
        """Send the webhook of a wake whose attempt this gateway has taken."""
        running = asyncio.ensure_future(self._deliver(record))
        self._running.add(running)
        running.add_done_callback(self._ended)

    def _ended(self, running: "asyncio.Task[None]") -> None:
        self._running.discard(running)
        waiting, self._waiting = self._waiting, {}
        if not running.cancelled():
            for id, turn in waiting.items():
                turn(id)

    def stop(self) -> None:
        """Another gateway sends again what was under way, when its time is over."""
        for running in self._running:
            running.cancel()

    async def _deliver(self, record: Record) -> None:
        try:
            sent = await self._sender.send(await self._keys(), record)
            async with self._borrow() as client:
                await self._settle(client, record, sent)
        except _Ended:
            return
        except (QueueberError, Problem, OSError) as error:
            # The attempt counts as lost, and is repeated when its time is over.
            log.warning("webhook_unsettled", subscription=record.id, reason=str(error)[:200])

    async def _settle(self, client: AsyncClient, sent_for: Record, sent: Sent) -> None:
        async def decide(record: Record) -> tuple[Record, Event | None, None]:
            wake, now_ms = record.wake, self._clock.now_ms()
            if wake is None or sent_for.wake is None or wake.id != sent_for.wake.id:
                raise _Ended
            if sent.outcome is Outcome.FAILED:
                failures = record.failures + 1
                later = replace(wake, attempt_at_ms=now_ms + backoff_ms(failures))
                return replace(record, wake=later, failures=failures), None, None
            arrived = replace(record, wake=replace(wake, attempt_at_ms=0), failures=0)
            if sent.outcome is Outcome.ARRIVED:
                return arrived, None, None
            acked = wakes.acknowledge(arrived, wake.snapshot)
            tails = await tails_of(client, acked.links)
            return *await settle(client, acked, tails, now_ms), None

        kept, _ = await change(Register(client), sent_for.id, decide)
        if sent.outcome is Outcome.FAILED:
            log.warning(
                "webhook_failed",
                subscription=sent_for.id,
                generation=sent_for.generation,
                failures=kept.record.failures,
                reason=sent.reason,
            )
        self.settled(kept)
