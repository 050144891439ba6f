"""A protected server: its bootstrap object lets nobody do anything before they have authenticated.

`authenticate` answers with the service, as the rights of the caller allow it: nothing else of the
connection says who calls. A client whose certificate is known need not authenticate. The connection
ends when the credential does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from queueber.auth.audit import Audit
from queueber.auth.authenticator import Authenticator
from queueber.auth.callers import Caller
from queueber.auth.quotas import Quotas
from queueber.clock import Clock
from queueber.errors import FailedPrecondition, Unauthenticated
from queueber.limits import DAY_MS, SECOND_MS
from queueber.model import Credential
from queueber.rpc.calls import Methods, call, early_fault
from queueber.rpc.handlers import ServiceHandler, end_session
from queueber.rpc.hello import take_hello
from queueber.schema import wire
from queueber.service.loop import Loop, TimerHandle
from queueber.service.service import Service
from queueber.service.session import Session
from queueber.service.shell import wake
from queueber.wire.callers import read_credential, write_caller

_log = structlog.get_logger("queueber.rpc")

_WRONG_MAX = 10
"""Wrong credentials of one connection, which then ends."""

_PATIENCE_SECONDS = 30.0
"""How long a connection may stay without a credential: it counts towards the limit of all."""

_FIRST = "authenticate first: this server is protected, and needs a token, or a user and password"


class Protection:
    """The callers of a protected server."""

    def __init__(
        self,
        authenticator: Authenticator,
        quotas: Quotas,
        audit: Audit,
        *,
        clock: Clock,
        loop: Loop,
    ) -> None:
        self.authenticator = authenticator
        self._quotas = quotas
        self.audit = audit
        self._clock = clock
        self._loop = loop
        self._timers: dict[Session, TimerHandle | None] = {}
        """The sessions that have authenticated, and what ends them in time."""

    def reload(self) -> None:
        """Read tokens and keys again, and open the audit file again.

        Callers whose entry is gone or has changed are disconnected. If a file is wrong, raises
        `QueueberError` and changes nothing.
        """
        self.audit.reopen()
        self.authenticator.reload()
        for session in list(self._timers):
            if session.caller is not None and not self.authenticator.is_current(session.caller):
                self._end(session, "revoked")

    def admit(self, session: Session, caller: Caller) -> None:
        """The session is that of the caller, as long as the credential is good."""
        session.caller = caller
        session.usage = self._quotas.of(caller.name)
        self._timers[session] = None
        self._watch(session, caller)

    def forget(self, session: Session) -> None:
        """The connection has ended."""
        timer = self._timers.pop(session, None)
        if timer is not None:
            timer.cancel()

    def _watch(self, session: Session, caller: Caller) -> None:
        if not caller.expires_at_ms:
            return
        left_ms = caller.expires_at_ms - self._clock.now_ms()
        if left_ms <= 0:
            self._end(session, "expired")
        else:
            # A loop cannot wait for years; a day is one timer of many.
            seconds = min(left_ms, DAY_MS) / SECOND_MS
            self._timers[session] = self._loop.call_later(seconds, self._watch, session, caller)

    def _end(self, session: Session, reason: str) -> None:
        _log.info("credential_ended", reason=reason, **session.who)
        self.forget(session)
        session.disconnect()


class ProtectedHandler(Methods, wire.Service.Server):  # type: ignore[misc]  # capnp is untyped
    """The bootstrap object of one connection to a protected server."""

    def __init__(
        self,
        service: Service,
        session: Session,
        protection: Protection,
        make: Callable[[Session], ServiceHandler],
    ) -> None:
        """`make` makes the service of a session that has authenticated."""
        super().__init__(service, session)
        session.audit = protection.audit
        self._protection = protection
        self._make = make
        self._inner: ServiceHandler | None = None
        self._wrong = 0
        self._is_checking = False
        self._patience = service.shell.loop.call_later(_PATIENCE_SECONDS, self._too_late)

    def __getattr__(self, name: str) -> Any:
        """Every method but those of this class: what a certificate allows, or nothing."""
        if not name.endswith("_context"):
            raise AttributeError(name)
        inner = self._by_certificate()
        return partial(self._refuse, name) if inner is None else getattr(inner, name)

    def _refuse(self, method: str, _context: Any) -> None:
        self._session.begun += 1
        raise early_fault(Unauthenticated(_FIRST), self._session, method)

    def _by_certificate(self) -> ServiceHandler | None:
        """The service of a client whose certificate is known."""
        session = self._session
        if not session.certificate_name:
            return None
        if self._inner is None:
            # One caller for a connection: the credential that it gave counts, also while it is
            # being checked.
            if session.caller is not None or self._is_checking:
                return None
            found = self._protection.authenticator.by_certificate(session.certificate_name)
            if found is None:
                return None
            self._inner = self._admitted(found)
        return self._inner

    def _admitted(self, caller: Caller) -> ServiceHandler:
        self._protection.admit(self._session, caller)
        return self._make(self._session)

    def connection_ended(self) -> None:
        self._patience.cancel()
        self._protection.forget(self._session)
        end_session(self._service, self._session)

    def _too_late(self) -> None:
        if self._session.caller is None and self._by_certificate() is None:
            _log.info("connection_without_credential", **self._session.who)
            self._session.disconnect()

    @call
    async def hello_context(self, context: Any) -> None:
        take_hello(self._session, context.params)

    @call
    async def authenticate_context(self, context: Any) -> None:
        if self._session.caller is not None or self._is_checking:
            raise FailedPrecondition("this connection has authenticated; open another one")
        self._is_checking = True
        try:
            caller = await self._authenticated(read_credential(context.params.credential))
        finally:
            self._is_checking = False
        context.results.service = self._admitted(caller)
        write_caller(context.results.init("caller"), caller.info)

    async def _authenticated(self, credential: Credential) -> Caller:
        session, authenticator = self._session, self._protection.authenticator
        try:
            return await authenticator.authenticate(credential, session.host)
        except Unauthenticated:
            shell = self._service.shell
            shell.check_may_wait(session)
            delay_ms = authenticator.throttle.failed(session.host)
            over = shell.loop.create_future()
            shell.loop.call_later(delay_ms / SECOND_MS, wake, over)
            await shell.wait(session, over)
            self._wrong += 1
            if self._wrong >= _WRONG_MAX:
                session.hang_up()
            raise
