"""Watches subscriptions: wakes workers when streams have grown, and has webhooks sent.

Each gateway has a watcher, and every watcher looks at all subscriptions. The first to make a change
wins, and the others see that. What a gateway was about to do when it died is done by another, or by
itself once it runs again: all that matters is in the records.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from queueber.client import AsyncClient
from queueber.clock import Clock
from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.problems import Problem
from queueber.gateway.streams.subscriptions import wakes
from queueber.gateway.streams.subscriptions.lookout import Lookout
from queueber.gateway.streams.subscriptions.next_wake import settle
from queueber.gateway.streams.subscriptions.records.positions import tail_of, tails_of
from queueber.gateway.streams.subscriptions.records.record import LINKS_MAX, Record
from queueber.gateway.streams.subscriptions.records.register import Kept, Overtaken, Register
from queueber.gateway.streams.subscriptions.refusals import Refusal
from queueber.gateway.streams.subscriptions.webhooks.deliveries import Deliveries
from queueber.gateway.streams.subscriptions.webhooks.sender import attempt_ms
from queueber.limits import SECOND_MS

SWEEP_SECONDS = 3.0
"""How often all subscriptions are looked at: what other gateways did is seen then."""
_IDLE_SWEEP_SECONDS = 10.0
"""While there are none."""
_FAILED_SECONDS = 5.0
_OFF_SECONDS = 600.0
"""After the server has refused the gateway, which an operator changes."""
_LOOKS_MAX = 16
"""Subscriptions that are looked at at one time."""
_QUIET_SECONDS = 0.05
"""Appends within this time are one reason to look."""
_NAMES_A_SWEEP = 2_000

Borrow = Callable[[], AbstractAsyncContextManager[AsyncClient]]


class Watcher:
    """`run` it as long as the gateway does."""

    def __init__(self, borrow: Borrow, clock: Clock, deliveries: Deliveries) -> None:
        self._borrow = borrow
        self._clock = clock
        self._deliveries = deliveries
        self.lookout = Lookout()
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._looking = asyncio.Semaphore(_LOOKS_MAX)
        self._listed: dict[str, str] = {}
        self._changed = asyncio.Event()
        deliveries.settled = self.changed

    # --- told by others ---------------------------------------------------------------------------

    def appended(self, path: str, end_offset: int) -> None:
        """A stream has grown."""
        for id in self.lookout.subscribers_of(path):
            self.look_soon(id)

    def changed(self, kept: Kept) -> None:
        """A record was changed here."""
        self.lookout.see(kept.record)
        self.look_soon(kept.record.id)

    def forget(self, id: str) -> None:
        self.lookout.forget(id)

    def look_soon(self, id: str) -> None:
        self._again.add(id)
        if id not in self._looks:
            self._looks[id] = asyncio.ensure_future(self._look_until_quiet(id))

    # --- looking ----------------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        sweep_at = loop.time() + random.random()
        try:
            while True:
                if loop.time() >= sweep_at:
                    sweep_at = await self._sweep() + loop.time()
                now_ms = self._clock.now_ms()
                dues = {id: _due_ms(record) for id, record in self.lookout.records.items()}
                wait = sweep_at - loop.time()
                for id, due_ms in dues.items():
                    if due_ms and due_ms <= now_ms:
                        self.look_soon(id)
                    elif due_ms:
                        wait = min(wait, (due_ms - now_ms) / SECOND_MS)
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), max(wait, _QUIET_SECONDS))
                except TimeoutError:
                    continue
        finally:
            for look in self._looks.values():
                look.cancel()
            self._deliveries.stop()

    async def _sweep(self) -> float:
        """Look at all, and return after how many seconds to do so again."""
        try:
            async with self._borrow() as client:
                ids = await Register(client).ids()
                self.lookout.keep(ids)
                await self._find_streams(client)
        except (QueueberError, Problem, OSError) as error:
            log.debug("subscriptions_not_seen", reason=str(error)[:200])
            is_off = isinstance(error, Refusal) and error.code == "SUBSCRIPTIONS_OFF"
            return _OFF_SECONDS if is_off else _FAILED_SECONDS
        for id in ids:
            if id not in self._looks:
                self.look_soon(id)
        spread = 1 + 0.2 * random.random()
        return (SWEEP_SECONDS if ids else _IDLE_SWEEP_SECONDS) * spread

    async def _find_streams(self, client: AsyncClient) -> None:
        """Find streams that patterns match, some at a time, beginning where the last time ended."""
        prefixes = self.lookout.prefixes()
        self._listed = {each: self._listed.get(each, "") for each in prefixes}
        for prefix in prefixes:
            count = 0
            async for name in client.topics(prefix, after=self._listed[prefix]):
                self.lookout.subscribers_of(name)
                self._listed[prefix] = name
                count += 1
                if count == _NAMES_A_SWEEP:
                    break
            else:
                self._listed[prefix] = ""

    async def _look_until_quiet(self, id: str) -> None:
        try:
            while id in self._again:
                self._again.discard(id)
                async with self._looking, self._borrow() as client:
                    try:
                        await self._look(client, id)
                    except Overtaken:
                        self._again.add(id)
                await asyncio.sleep(_QUIET_SECONDS * (0.5 + random.random()))
        except (QueueberError, Problem, OSError) as error:
            # The next sweep looks again.
            log.debug("subscriptions_not_seen", subscription=id, reason=str(error)[:200])
        finally:
            del self._looks[id]
            self._changed.set()
            if id in self._again:
                self._again.discard(id)

    async def _look(self, client: AsyncClient, id: str) -> None:
        """Do what is to be done for one subscription. Raises `Overtaken`."""
        register = Register(client)
        kept = await register.read(id)
        if kept is None:
            self.lookout.forget(id)
            return
        record, now_ms = kept.record, self._clock.now_ms()
        self.lookout.see(record)
        linked, event = await self.with_new_links(client, record), None
        if not wakes.is_in_flight(record, now_ms):
            tails = await tails_of(client, linked.links)
            linked, event = await settle(client, linked, tails, now_ms)
        wake = linked.wake
        is_to_send = wake is not None and 0 < wake.attempt_at_ms <= now_ms
        if is_to_send and self._deliveries.is_full:
            self._deliveries.wait(id, self.look_soon)
            return
        if is_to_send and wake is not None:
            taken = replace(wake, attempt_at_ms=now_ms + attempt_ms(linked))
            linked = replace(linked, wake=taken)
        if linked != record:
            kept = await register.replace(kept, linked, event)
            self.lookout.see(kept.record)
        if is_to_send:
            self._deliveries.begin(kept.record)

    async def with_new_links(self, client: AsyncClient, record: Record) -> Record:
        """The record with links to the streams that its pattern matches and that were found."""
        for path in self.lookout.unlinked(record):
            if len(record.links) >= LINKS_MAX:
                log.warning("subscription_full", subscription=record.id, links=LINKS_MAX)
                break
            tail = await tail_of(client, path)
            if tail is None:
                self.lookout.is_gone(record.id, path)
            else:
                record = wakes.link(record, path, tail.start, explicit=False)
        return record


def _due_ms(record: Record) -> int:
    """When something is to be done for it, whatever streams do; 0: never."""
    wake = record.wake
    return 0 if wake is None else wake.attempt_at_ms or wake.lease_until_ms
