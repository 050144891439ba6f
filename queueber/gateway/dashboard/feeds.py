"""Feeds: what viewers of one subject see, asked of the server once a second for all of them.

A feed runs while somebody looks at it. Viewers of one caller share it, for they see the same. It
has rows with versions, and a viewer that knows a version gets what changed since. So a viewer that
reads slowly skips versions, and nothing piles up for it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.problems import Problem, problem_of

SECONDS = 1.0
_PAUSE_AFTER_ERROR = 3.0
_PAUSE_MAX = 5.0
_SHARE = 10
"""A feed waits for so many times the time that a look took: a server with many queues is asked less
often."""

Look = Callable[[], Awaitable[Mapping[str, msgspec.Struct]]]
"""Asks the server for the rows of a subject, by name."""


class Change(msgspec.Struct):
    """What a viewer has not seen yet."""

    fields: tuple[str, ...]
    all: bool
    """Whether these are all rows; else the others are as they were."""
    rows: list[msgspec.Struct]


@dataclass(slots=True, eq=False)
class Feed:
    look: Look
    viewers: set[asyncio.Event] = field(default_factory=set)
    version: int = 0
    problem: Problem | None = None
    """Why the server did not answer the last time."""
    _rows: dict[str, tuple[int, msgspec.Struct]] = field(default_factory=dict)
    _names_version: int = 0
    """In which rows came or went; 0 before the first look."""
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun, pause = loop.time(), SECONDS
            try:
                rows = await self.look()
            except QueueberError as error:
                self._failed(problem_of(error))
                pause = _PAUSE_AFTER_ERROR
            except Exception as error:  # noqa: BLE001  viewers are told, and the log says why
                log.error("request_failed", path="/live", exc_info=error)
                self._failed(Problem(500, "INTERNAL", "the gateway failed; its log says why"))
                pause = _PAUSE_AFTER_ERROR
            else:
                self._found(rows)
            took = loop.time() - begun
            await asyncio.sleep(max(pause, min(_SHARE * took, _PAUSE_MAX)))

    def _found(self, rows: Mapping[str, msgspec.Struct]) -> None:
        version = self.version + 1
        known = self._rows
        self._rows = {}
        for name, row in rows.items():
            seen = known.get(name)
            self._rows[name] = seen if seen is not None and seen[1] == row else (version, row)
        if self._rows.keys() != known.keys() or not self._names_version:
            self._names_version = version
        self.problem = None
        self._tell(version)

    def _failed(self, problem: Problem) -> None:
        self.problem = problem
        self._tell(self.version + 1)

    def _tell(self, version: int) -> None:
        self.version = version
        for viewer in self.viewers:
            viewer.set()

    def since(self, version: int) -> Change | None:
        """What is new to whoever has seen that version; None if nothing is."""
        is_all = version < self._names_version
        rows = [row for at, row in self._rows.values() if is_all or at > version]
        if not rows and not is_all:
            return None
        return Change(rows[0].__struct_fields__ if rows else (), is_all, rows)


class Feeds:
    """The feeds that somebody looks at."""

    def __init__(self) -> None:
        self._feeds: dict[Hashable, Feed] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    @contextlib.contextmanager
    def viewed(self, key: Hashable, look: Look, viewer: asyncio.Event) -> Iterator[Feed]:
        """The feed of that key, which looks as long as it has viewers."""
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(look)
            feed.start()
        feed.viewers.add(viewer)
        viewer.set()
        try:
            yield feed
        finally:
            feed.viewers.discard(viewer)
            if not feed.viewers and self._feeds.get(key) is feed:
                feed.stop()
                del self._feeds[key]
