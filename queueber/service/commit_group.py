"""Group commit: the answers of concurrent operations wait for one shared sync of the log.

    loop thread    write a, write b ──▶ wait ─────────────────────▶ answer a, answer b
    sync thread                     └──▶ flush_wal(sync) ──┘

Writing happens on the loop's thread and is not synced. `wait` returns once a sync that began after
the write has ended; while it runs, later operations gather for the next one.

Waking a thread and being woken by it takes longer than a short sync. While all syncs are short,
those for few items run on the loop's thread, and calls that come meanwhile gather in their sockets.
For many items it is better to read and write the next ones meanwhile.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from queueber.errors import Internal, Unavailable
from queueber.limits import STORE_RETRY_MS
from queueber.service.loop import Future, Loop, TimerHandle, fail
from queueber.service.measures.histogram import Histogram
from queueber.service.measures.metrics import GROUP_SIZES, SYNC_SECONDS

_SOON_SECONDS = 0.001
_SOON_TIMES = 16
"""When a sync takes longer, its thread may be waiting for the interpreter."""
_SELDOM_SECONDS = 0.05
"""It was the disk, then."""
_SHORT_SECONDS = 0.0005
_SHORT_TIMES = 16
"""After so many short syncs in a row, the next runs on the loop's thread. A long one, which blocks
the loop once, sends the next ones to the other thread again."""
_FEW_ITEMS = 64
_STAND_BACK_SECONDS = 1e-5
"""With what the system adds, as long as a thread takes to wake up."""

Waiting = tuple[Future, object]
"""A future, and the result that it gets after the sync."""


class CommitMeasures:
    """How many calls and items shared a sync, and how long each took."""

    __slots__ = ("calls", "items", "seconds")

    def __init__(self) -> None:
        self.calls = Histogram(GROUP_SIZES)
        self.items = Histogram(GROUP_SIZES)
        self.seconds = Histogram(SYNC_SECONDS)


class CommitGroup:
    def __init__(
        self,
        loop: Loop,
        sync: Callable[[], None],
        *,
        on_failure: Callable[[BaseException], None],
        seconds: Callable[[], float] | None = None,
    ) -> None:
        """`sync` runs in a thread of its own; `on_failure` on the loop, after which nothing
        commits. `seconds` is a clock for durations; without one, all syncs run in the thread."""
        self._loop = loop
        self._sync = sync
        self._on_failure = on_failure
        self.before_sync: Callable[[], None] = lambda: None
        """Called before each sync: writes what was gathered for it."""
        self._waiting: list[Waiting] = []
        self._items = 0
        """How many items they wait for."""
        self._is_syncing = False
        self._failure: BaseException | None = None
        self._is_closing = threading.Event()
        self._requests: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="queueber-sync", daemon=True)
        self._stands_back: TimerHandle | None = None
        self.syncs_total = 0
        self.measures = CommitMeasures()
        self._seconds = seconds
        self._short_syncs = 0
        """How many syncs in a row were short."""
        self._start_thread()

    # What has to do with the thread is apart from the rest: a simulation has none.

    def _start_thread(self) -> None:
        self._thread.start()

    def _hand_to_thread(self, group: list[Waiting]) -> None:
        self._requests.put(group)
        if not self._is_closing.is_set():
            self._stand_back_later(_SOON_TIMES)

    def _stand_back_later(self, soon_times: int) -> None:
        seconds = _SOON_SECONDS if soon_times else _SELDOM_SECONDS
        self._stands_back = self._loop.call_later(seconds, self._stand_back, soon_times)

    def _stand_back(self, soon_times: int) -> None:
        """Let the thread have the interpreter, which it needs before a sync and after it.

        A busy loop gives it up in every turn, for a moment in which nobody else can wake up; and
        each such moment makes the thread begin anew to wait for its share.
        """
        self._is_closing.wait(_STAND_BACK_SECONDS)
        self._stand_back_later(max(0, soon_times - 1))

    def _thread_has_synced(self, group: list[Waiting], failure: BaseException | None) -> None:
        self._stand_back_no_more()
        self._finish(group, failure)

    def _stand_back_no_more(self) -> None:
        if self._stands_back is not None:
            self._stands_back.cancel()

    async def wait(self) -> None:
        """Return once everything written so far is durable."""
        future = self._loop.create_future()
        self.answer(future, None)
        await future

    def answer(self, future: Future, answer: object, items: int = 1) -> None:
        """Set the future's result, about so many items, once all written so far is durable."""
        if self._failure is not None:
            fail(future, _sync_failed(self._failure))
            return
        self._waiting.append((future, answer))
        self._items += items
        self.sync_soon()

    def sync_soon(self) -> None:
        """Begin a sync, if there is something to sync after `before_sync`."""
        if not self._is_syncing:
            self._is_syncing = True
            # Not at once: what runs in this turn of the loop, and in the next, joins the same sync.
            self._loop.call_soon(self._loop.call_soon, self._request_sync)

    def close(self) -> None:
        """End the thread, after the sync under way. Whoever still waits is not answered."""
        self._is_closing.set()
        self._requests.put(None)
        self._thread.join()
        self._stand_back_no_more()

    def _request_sync(self) -> None:
        try:
            self.before_sync()
        except Exception as error:  # noqa: BLE001  it stops the server
            self._finish([], error)
            return
        group, self._waiting = self._waiting, []
        items, self._items = self._items, 0
        if not group:
            self._is_syncing = False
            return
        self.measures.calls.observe(len(group))
        self.measures.items.observe(items)
        if items <= _FEW_ITEMS and self._short_syncs >= _SHORT_TIMES:
            self._sync_here(group)
        else:
            self._hand_to_thread(group)

    def _sync_here(self, group: list[Waiting]) -> None:
        try:
            self._timed_sync()
        except Unavailable:
            self._hand_to_thread(group)  # which tries until there is space
        except BaseException as error:  # noqa: BLE001  it stops the server
            self._finish(group, error)
        else:
            self._finish(group, None)

    def _timed_sync(self) -> None:
        if self._seconds is None:
            self._sync()
            return
        began, before = self._seconds(), self._short_syncs
        self._short_syncs = 0
        self._sync()
        took = self._seconds() - began
        self.measures.seconds.observe(took)
        if took < _SHORT_SECONDS:
            self._short_syncs = before + 1

    def _run(self) -> None:
        while (group := self._requests.get()) is not None:
            failure = self._sync_until_settled()
            self._loop.call_soon_threadsafe(self._thread_has_synced, group, failure)

    def _sync_until_settled(self) -> BaseException | None:
        """Sync, however long the disk is full; returns why if it cannot be done at all."""
        while True:
            try:
                self._timed_sync()
            except Unavailable as error:
                if self._is_closing.wait(STORE_RETRY_MS / 1000):
                    return error
            except BaseException as error:  # noqa: BLE001  handed to the loop, which stops the server
                return error
            else:
                return None

    def _finish(self, group: list[Waiting], failure: BaseException | None) -> None:
        self.syncs_total += 1
        if failure is not None:
            # After a failed sync nobody knows what the disk holds: stop acknowledging for good.
            self._failure = failure
            group += self._waiting
            self._waiting = []
            self._on_failure(failure)
        for future, answer in group:
            if failure is not None:
                fail(future, _sync_failed(failure))
            elif not future.done():
                future.set_result(answer)
        self._request_sync()


def _sync_failed(failure: BaseException) -> Internal:
    # Not `Unavailable`: the write may have happened, so the call must not be sent again unseen.
    return Internal(
        f"the write ahead log could not be synced ({failure}); the server stops, and whether this "
        "call took effect is known once it is started again"
    )
