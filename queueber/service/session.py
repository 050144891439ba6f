"""Sessions: one caller each, as every adapter sees it, and the calls of all of them.

A session says who the caller is, admits its calls, counts the answers that the caller has not read,
and turns what goes wrong in a call into a code and a sentence. A `QueueHandle` is a queue as one
session holds it: adapters keep it, and give it to every verb.

`Admission` counts the calls under way in the server. At the limit, callers are held back for a
while: their adapter reads no further call of theirs until some have ended. The calls of a caller
that has waited long enough are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from queueber.auth.audit import Audit
from queueber.auth.callers import Caller
from queueber.auth.quotas import Usage
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import (
    Internal,
    InvariantViolation,
    NotFound,
    PermissionDenied,
    QueueberError,
    ResourceExhausted,
    StorageCorrupt,
    StorageFailed,
    Unauthenticated,
    Unavailable,
)
from queueber.service.loop import Future, Loop, TimerHandle
from queueber.service.unread_answers import AnswerBudget, UnreadAnswers

_log = structlog.get_logger("queueber.service")

CALLS_MAX = 4096
"""Calls of one session under way. At the limit nothing more is read of it until some have ended."""
WAITING_CALLS_MAX = 4096
"""Calls of one session that wait for items or results."""
REFUSALS_MAX = 25_000
"""Calls of one session that were refused, ever. Cap'n Proto keeps about 4 KiB of each until its
caller says that it is done with it, and does not tell us; so the connection ends instead."""
WAIT_SECONDS_MAX = 1.0
"""How long a caller is held back at the limit before its calls are refused."""


class Admission:
    """Counts calls under way. A call that waits for items or results does not count."""

    def __init__(self, loop: Loop, calls_max: int) -> None:
        self.loop = loop
        self.calls_max = calls_max
        self._idle: Future | None = None
        self.calls = 0
        self.arriving = 0
        """Calls that were admitted in this turn of the loop, and enter in the next."""
        self.is_closed = False
        self._held_back: dict[Callable[[], None], None] = {}
        self._is_waking = False

    @property
    def is_full(self) -> bool:
        return self.calls + self.arriving >= self.calls_max

    @property
    def held_back(self) -> int:
        """How many callers wait until their next call may begin."""
        return len(self._held_back)

    def check(self, *, may_wait: bool) -> None:
        """Refuse a call if the server stops, or is full and its caller cannot wait any longer."""
        if self.is_closed:
            raise Unavailable("the server is shutting down; send the call again in a moment")
        if self.is_full and not may_wait:
            raise Unavailable(
                f"{self.calls + self.arriving} calls are under way, the limit; send the call again "
                "in a moment"
            )

    def enter(self) -> None:
        self.calls += 1

    def arrived(self) -> None:
        """A call has begun, or was refused: it is no longer on its way in."""
        self.arriving -= 1
        self._wake_held_back()

    def _wake_held_back(self) -> None:
        if self._held_back and not self._is_waking and not self.is_full:
            self._is_waking = True
            self.loop.call_soon(self._let_in)

    def leave(self) -> None:
        self.calls -= 1
        self._wake_held_back()
        if self.calls == 0 and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def hold_back(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once more calls may come in. First come, first served."""
        self._held_back[go_on] = None

    def forget(self, go_on: Callable[[], None]) -> None:
        self._held_back.pop(go_on, None)

    def _let_in(self) -> None:
        self._is_waking = False
        while self._held_back and not self.is_full:
            go_on = next(iter(self._held_back))
            del self._held_back[go_on]
            go_on()

    def close(self) -> None:
        """Let no further call in."""
        self.is_closed = True

    async def wait_idle(self) -> None:
        """Return once no call is under way."""
        while self.calls:
            self._idle = self.loop.create_future()
            await self._idle


class Session:
    """Also what leases are bound to that end with the caller's connection."""

    def __init__(
        self,
        admission: Admission,
        budget: AnswerBudget,
        *,
        address: str = "",
        on_crash: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """`on_crash` is told of errors that the server must not outlive."""
        self._admission = admission
        self._on_crash = on_crash
        self.answers = UnreadAnswers(budget)
        self.address = address
        self.name = ""
        self.process = ""
        """Its process and machine, as it says."""
        self.caller: Caller | None = None
        """Who has authenticated; None on a server that is not protected."""
        self.certificate_name = ""
        """The common name of the client's certificate, once TLS has verified it."""
        self.usage: Usage | None = None
        """What the caller has used of its quota; None if it has none."""
        self.audit: Audit | None = None
        self.calls = 0
        self.arriving = 0
        self.begun = self.begun_ever = 0
        """Calls in this turn of the loop, and in all."""
        self.waiting = 0
        """Calls that wait for items or results."""
        self.queues = 0
        """Queues that it holds a capability of."""
        self.refusals = 0
        self.can_hold_back = False
        """Its adapter stops reading calls while `may_begin` is false."""
        self._has_waited = False
        """It was held back for as long as it may be, and the server is still full."""
        self.hang_up: Callable[[], None] = lambda: None
        """Ends the connection, once what is under way has been answered."""
        self.disconnect: Callable[[], None] = lambda: None
        """Ends the connection at once."""
        self._go_on: Callable[[], None] | None = None
        self._timer: TimerHandle | None = None

    @property
    def who(self) -> dict[str, str]:
        """The caller, for a line of the log."""
        who = {"caller": self.address}
        if self.name:
            who["client"] = self.name
        if self.caller is not None:
            who["identity"] = self.caller.name
        return who

    @property
    def host(self) -> str:
        """The address without the port, which changes with each connection."""
        return self.address.rpartition(":")[0]

    @property
    def holder(self) -> str:
        """The caller, for a list of leases: who it is, what it calls itself, where it is, and in
        which process."""
        if self.caller is not None:
            name = f"{self.caller.name}, {self.name}" if self.name else self.caller.name
        else:
            name = self.name
        place = f"{self.address}, {self.process}" if self.process else self.address
        return f"{name} ({place})" if name else place

    # --- calls ------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Let a call in, or refuse it."""
        self.begun += 1
        self.begun_ever += 1
        if self.usage is not None:
            self.usage.begin_call()
        admission = self._admission
        admission.check(may_wait=self.can_hold_back and not self._has_waited)
        # A call enters in the first turn of its task, if it gets that far; it counts until then.
        admission.arriving += 1
        self.arriving += 1
        admission.loop.call_soon(self._arrived)

    def _arrived(self) -> None:
        self._admission.arrived()
        self.arriving -= 1
        if self._go_on is not None:
            self._look()

    def enter(self) -> None:
        """A call is under way."""
        self._admission.enter()
        self.calls += 1

    def leave(self) -> None:
        self.calls -= 1
        self._admission.leave()
        if self._go_on is not None:
            self._look()

    def check_may_wait(self) -> None:
        if self.waiting >= WAITING_CALLS_MAX:
            raise ResourceExhausted(
                f"{self.waiting} calls of this connection are waiting, the limit; call again when "
                "some have ended"
            )

    # --- holding calls back -----------------------------------------------------------------------

    @property
    def may_begin(self) -> bool:
        """Whether the adapter may read another call."""
        if self.calls + self.arriving >= CALLS_MAX:
            return False
        if not self._admission.is_full:
            self._has_waited = False
            return True
        return self._has_waited  # the call is refused

    def hold_back(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once calls may begin, or once the caller has waited for too long."""
        self.forget_held_back()
        self._go_on = go_on
        if self.calls + self.arriving < CALLS_MAX:
            self._admission.hold_back(self._release)
            self._timer = self._admission.loop.call_later(WAIT_SECONDS_MAX, self._waited)

    def _look(self) -> None:
        """A call of its own has ended, which matters if it had too many."""
        if self._timer is None and self.calls + self.arriving < CALLS_MAX:
            self._release()

    def _waited(self) -> None:
        self._has_waited = True
        self._release()

    def _release(self) -> None:
        go_on = self._go_on
        self.forget_held_back()
        if go_on is not None:
            go_on()

    def forget_held_back(self) -> None:
        """Nobody waits to go on any more."""
        self._go_on = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._admission.forget(self._release)

    # --- what goes wrong --------------------------------------------------------------------------

    def refused(self, error: Exception, method: str = "") -> tuple[str, str]:
        """A call of a method has failed: the code and the sentence that its caller is told.

        A caller that was refused too often is disconnected.
        """
        self.refusals += 1
        if self.refusals == REFUSALS_MAX:
            self.hang_up()
        if isinstance(error, InvariantViolation | StorageCorrupt | StorageFailed):
            self.crashed(error)
        elif not isinstance(error, QueueberError):
            _log.error("unexpected_error", exc_info=error, **self.who)
        elif isinstance(error, PermissionDenied | Unauthenticated) and self.audit is not None:
            self._audit_refusal(self.audit, error, method)
        if isinstance(error, QueueberError):
            return error.code, str(error)
        name = type(error).__name__
        return Internal.code, f"the server failed at this call ({name}); its log says more"

    def _audit_refusal(self, audit: Audit, error: QueueberError, method: str) -> None:
        kind = getattr(error, "kind", "")
        subject: dict[str, object] = {"method": method.removesuffix("_context")}
        if kind:
            subject[kind] = getattr(error, "name", "")
        key = self.caller.name if self.caller is not None else self.host
        audit.refused(dict(self.who), key, subject, error)

    def crashed(self, error: BaseException) -> None:
        """A promise of ours is broken, or the store is: the server must not go on."""
        self._on_crash(error)


@dataclass(frozen=True, slots=True)
class QueueHandle:
    state: QueueState
    """For the service alone. It stays the same when the queue is deleted and created anew."""
    session: Session

    @property
    def name(self) -> str:
        return self.state.name

    def check_alive(self) -> None:
        if self.state.is_deleted:
            raise deleted(self.state)


def deleted(queue: QueueState) -> NotFound:
    return NotFound(f"queue {queue.name!r} was deleted; ask for it again to create it anew")
