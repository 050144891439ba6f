"""Who may connect to the server, as its options say, and what its callers are given."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from queueber.auth.audit import Audit
from queueber.auth.authenticator import Authenticator
from queueber.auth.quotas import QuotaLimits, Quotas
from queueber.clock import Clock
from queueber.config import Config
from queueber.model import ServerInfo
from queueber.rpc.handlers import ServiceHandler
from queueber.rpc.protection import ProtectedHandler, Protection
from queueber.service.loop import Loop
from queueber.service.service import Service
from queueber.service.session import Session


class Callers:
    def __init__(self, config: Config, clock: Clock, loop: Loop) -> None:
        """Raises `QueueberError` if a file that the options name is missing or wrong."""
        self._loop = loop
        # One thread: a password takes a third of a second, and others have work for the cores.
        self._passwords = ThreadPoolExecutor(1, "queueber-passwords")
        is_audited = config.is_protected or config.audit_file is not None
        self._audit = Audit(config.audit_file, clock) if is_audited else None
        self._protection: Protection | None = None
        if config.is_protected and self._audit is not None:
            limits = QuotaLimits(
                config.caller_calls_per_second_max,
                config.caller_bytes_per_second_max,
                config.caller_queues_max,
                config.caller_topics_max,
            )
            self._protection = Protection(
                Authenticator(config, clock, self._in_background),
                Quotas(limits, clock),
                self._audit,
                clock=clock,
                loop=loop,
            )

    async def _in_background(self, work: Callable[[], bool]) -> bool:
        done: bool = await self._loop.run_in_executor(self._passwords, work)
        return done

    def bootstrap(
        self, service: Service, describe: Callable[[], ServerInfo]
    ) -> Callable[[Session], Any]:
        """What makes the first object of each connection."""
        protection = self._protection

        def serve(session: Session) -> ServiceHandler:
            session.audit = self._audit
            return ServiceHandler(service, session, describe)

        if protection is None:
            return serve
        return lambda session: ProtectedHandler(service, session, protection, serve)

    def reload(self) -> None:
        """Read the files again that the options name."""
        if self._protection is not None:
            self._protection.reload()
        elif self._audit is not None:
            self._audit.reopen()

    def close(self) -> None:
        self._passwords.shutdown(cancel_futures=True)
        if self._audit is not None:
            self._audit.close()
