"""What a server reads again on SIGHUP: certificates, and whatever else is registered."""

from collections.abc import Callable

import structlog

from queueber.errors import QueueberError

_log = structlog.get_logger("queueber")


class Reloads:
    def __init__(self) -> None:
        self._on_reload: list[tuple[str, Callable[[], object]]] = []

    def add(self, name: str, reload: Callable[[], object]) -> None:
        """`reload` raises a `QueueberError` if it keeps what it had. Logs call it `name`."""
        self._on_reload.append((name, reload))

    def run(self) -> None:
        """Reload everything. What is wrong is logged, and the rest is reloaded all the same."""
        reloaded = []
        for name, reload in self._on_reload:
            try:
                reload()
            except QueueberError as error:
                _log.error("reload_failed", what=name, reason=str(error))
            else:
                reloaded.append(name)
        _log.info("reloaded", what=reloaded)
