"""One subscription: what its consumer gets, as long as there are credits.

A subscription has a task of its own. Each time it is woken it sends one delivery a turn of the
loop, so that one with much to read does not keep calls waiting. A delivery is sent only while few
messages are unanswered, and never more than the consumer has granted: a slow consumer costs memory
for those, and nothing more. Credits are in memory only.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from queueber.errors import Aborted, InvalidArgument, QueueberError, Unavailable
from queueber.limits import (
    CREDITS_MAX,
    DELIVERIES_MAX,
    DELIVERY_BYTES,
    DELIVERY_BYTES_MAX,
    DELIVERY_MESSAGES_MAX,
    ITEM_WIRE_BYTES,
)
from queueber.model import Delivery
from queueber.service.loop import Future
from queueber.service.session import Session
from queueber.service.shell import Shell, wake

_log = structlog.get_logger("queueber.service")

_GIVE_BACK_SECONDS = 1.0
"""Within this time the end of a connection is known."""
_UNREAD_RETRY_MS = 50
"""When to look again whether the connection has read its answers."""


class Receiver(Protocol):
    """The consumer, as an adapter reaches it. What is sent arrives in the order of the calls."""

    def deliver(self, delivery: Delivery) -> Awaitable[object]: ...
    def heartbeat(self, time_ms: int, sequence: int) -> Awaitable[object]: ...
    def ended(self, error: str) -> Awaitable[object]: ...


class Feed(Protocol):
    """Where the messages of a subscription come from."""

    def check_alive(self) -> None:
        """Raises an error if there will be nothing any more."""

    async def next(self, messages_max: int, bytes_max: int) -> list[Delivery]:
        """What there is to deliver now. Asked only right after `check_alive`."""

    @property
    def is_over(self) -> bool:
        """Whether everything was delivered, and nothing will come."""

    @property
    def look_again_ms(self) -> int | None:
        """When to look again though nothing has come; None: not before something comes."""

    def give_back(self) -> None:
        """The subscription has ended: nothing of what it got is worked on any more."""


class Subscription:
    def __init__(
        self,
        shell: Shell,
        session: Session,
        receiver: Receiver,
        feed: Feed,
        *,
        name: str,
        heartbeat_ms: int,
        messages_max: int,
        deliveries_max: int = 0,
    ) -> None:
        self._shell = shell
        self.session = session
        self._receiver = receiver
        self.feed = feed
        self.name = name
        self.credits = 0
        self._heartbeat_ms = heartbeat_ms
        self._messages_max = min(messages_max or DELIVERY_MESSAGES_MAX, DELIVERY_MESSAGES_MAX)
        self._deliveries_max = min(deliveries_max or DELIVERIES_MAX, DELIVERIES_MAX)
        self._sent_at_ms = shell.clock.now_ms()
        self._under_way = self._under_way_bytes = 0
        self._is_heart_beating = False
        self.is_over = False
        self._is_told = False
        """Whether the consumer knows that nothing more comes."""
        self.error: QueueberError | None = None
        """Why it is over, if that is no end that its consumer wanted."""
        self.when_over: list[Callable[[], None]] = []
        self._is_woken = False
        self._sleep: Future | None = None

    # --- what others tell it ----------------------------------------------------------------------

    def grant(self, credits: int) -> None:
        """So many messages more may be delivered."""
        self.check_active()
        if self.credits + credits > CREDITS_MAX:
            raise InvalidArgument(
                f"credits: {credits} more would be {self.credits + credits}; the limit is "
                f"{CREDITS_MAX}"
            )
        self.credits += credits
        self.wake()

    def check_active(self) -> None:
        if self.is_over:
            raise self.error or Aborted("the subscription is over; subscribe again")

    def wake(self) -> None:
        """There may be something to do."""
        self._is_woken = True
        if self._sleep is not None:
            wake(self._sleep)

    def end(self, error: QueueberError) -> None:
        """Deliver nothing more, and tell the consumer why."""
        if self.is_over:
            return
        self.drop(error)
        self._tell_end(f"{error.code}: {error}")

    def _tell_end(self, text: str) -> None:
        if not self._is_told:
            self._is_told = True
            self._shell.loop.create_task(self._tell(self._receiver.ended(text)))

    def drop(self, error: QueueberError | None = None) -> None:
        """Deliver nothing more, and give back what the consumer has not settled."""
        if not self.is_over:
            self.lost(error)
            self.feed.give_back()

    def let_go(self) -> None:
        """Nobody holds it any more, or its consumer has failed.

        Perhaps its connection has ended, which is heard of in a moment. Then its leases expire, and
        an attempt at each message counts: one that kills its consumers must not do so forever.
        Else they are given back.
        """
        if not self.is_over:
            self.lost()
            self._shell.loop.call_later(_GIVE_BACK_SECONDS, self.feed.give_back)

    def lost(self, error: QueueberError | None = None) -> None:
        """Deliver nothing more: the consumer is gone, and its leases end with its connection."""
        if not self.is_over:
            self.is_over = True
            self.error = error
            self.wake()
            for tell in self.when_over:
                tell()
            self.when_over.clear()

    async def _tell(self, told: Awaitable[object]) -> None:
        try:
            await told
        except Exception as error:  # noqa: BLE001  whatever its consumer has raised
            _log.debug("consumer_failed", consumer=self.name, error=str(error))
            self.let_go()

    # --- delivering -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Deliver until the subscription is over."""
        try:
            await self._run()
        except QueueberError as error:
            self.end(error)
        except Exception as error:  # noqa: BLE001  the consumer must hear that nothing comes
            code, text = self.session.refused(error)
            self.end(Unavailable(f"{code}: {text}"))

    async def _run(self) -> None:
        shell = self._shell
        while not self.is_over:
            self._is_woken = False
            if shell.admission.is_closed:
                raise Unavailable("the server is shutting down; subscribe again in a moment")
            # Also without credits: whoever grants none for long hears at once that nothing comes.
            self.feed.check_alive()
            if self._may_send():
                found = await self.feed.next(min(self.credits, self._messages_max), DELIVERY_BYTES)
                if self.is_over:
                    return
                for delivery in found:
                    self._send(delivery)
                if found:
                    await shell.next_turn()
                    continue
            if self.feed.is_over and not self._under_way:
                # Its consumer may still acknowledge what it got, until it lets go.
                self._tell_end("")
                return
            await self._wait()

    def _may_send(self) -> bool:
        return (
            self.credits > 0
            and self._under_way < self._deliveries_max
            and self._under_way_bytes < DELIVERY_BYTES_MAX
            and not self._has_unread()
        )

    def _has_unread(self) -> bool:
        try:
            self.session.answers.check()
        except Unavailable:
            return True
        return False

    def _send(self, delivery: Delivery) -> None:
        count = delivery.slice.count
        size = sum([len(each.payloads) for each in delivery.slice.packed]) + count * ITEM_WIRE_BYTES
        self.credits -= count
        self._under_way += 1
        self._under_way_bytes += size
        self._sent_at_ms = self._shell.clock.now_ms()
        self.session.answers.made(size)
        self._shell.loop.create_task(self._deliver(self._receiver.deliver(delivery), size))

    async def _deliver(self, sent: Awaitable[object], size: int) -> None:
        await self._tell(sent)
        self._under_way -= 1
        self._under_way_bytes -= size
        self.wake()

    # --- waiting ----------------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Return when somebody wakes it, or when it is time to look again."""
        shell = self._shell
        now_ms = shell.clock.now_ms()
        times = [self._sent_at_ms + self._heartbeat_ms] if self._heartbeat_ms else []
        if (again_ms := self.feed.look_again_ms) is not None:
            times.append(again_ms)
        if self._has_unread():
            times.append(now_ms + _UNREAD_RETRY_MS)
        if self._heartbeat_ms and now_ms >= self._sent_at_ms + self._heartbeat_ms:
            self._beat(now_ms)
            return
        if self._is_woken:
            return
        self._sleep = shell.loop.create_future()
        timer = None
        if times:
            left_ms = max(0, min(times) - now_ms)
            timer = shell.loop.call_later(left_ms / 1000, wake, self._sleep)
        try:
            await self._sleep
        finally:
            self._sleep = None
            if timer is not None:
                timer.cancel()

    def _beat(self, now_ms: int) -> None:
        self._sent_at_ms = now_ms
        if not self._is_heart_beating and not self._under_way:
            self._is_heart_beating = True
            sequence = self._shell.engine.topics.sequences.last
            self._shell.loop.create_task(self._heartbeat(now_ms, sequence))

    async def _heartbeat(self, now_ms: int, sequence: int) -> None:
        await self._tell(self._receiver.heartbeat(now_ms, sequence))
        self._is_heart_beating = False
