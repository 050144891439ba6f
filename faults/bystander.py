"""A client that runs during the faults. It records all its calls, and checks them at the end."""

import threading
from types import TracebackType
from typing import Self

import queueber
from faults.checker import check
from faults.observed import ObservedQueue, observe_drain, read_final_state
from faults.recorder import Recorder
from queueber.tls import TlsOptions

QUEUE = "bystander"
ITEMS = 5
ROUNDS_A_BATCH = 50
_PAUSE_SECONDS = 0.25
_LEASE_SECONDS = 600
"""Long enough that no lease expires while the final state is read."""
_ROUNDS_MAX = 20_000
"""More than an hour. The history is kept in memory."""


class Bystander:
    """Adds items and ends them in every way, with a few calls a second, until the block ends.

    `wrong` then has the violations that the history checker found.
    """

    def __init__(self, address: str, tls: TlsOptions | None = None) -> None:
        self._address = address
        self._tls = tls
        self._recorder = Recorder()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bystander", daemon=True)
        self._rounds = 0
        self.wrong: list[str] = []

    @property
    def calls(self) -> int:
        return len(self._recorder.history.calls)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        if kind is None:
            self.wrong = self._judge()

    def _run(self) -> None:
        with queueber.connect(self._address, tls=self._tls) as client:
            queue = ObservedQueue(client.queue(QUEUE), self._recorder, "bystander")
            while self._rounds < _ROUNDS_MAX and not self._is_over.wait(_PAUSE_SECONDS):
                try:
                    self._round(queue)
                except queueber.QueueberError:
                    continue  # the recorder has it

    def _round(self, queue: ObservedQueue) -> None:
        number, self._rounds = self._rounds, self._rounds + 1
        names = [f"{number} {at}" for at in range(ITEMS)]
        batch = f"batch {number // ROUNDS_A_BATCH}"
        queue.add([name.encode() for name in names], keys=names, batch=batch)
        lease = queue.poll(ITEMS, lease=_LEASE_SECONDS)
        if len(lease.ids) < ITEMS:
            return
        first, second, third, fourth, *others = lease.ids
        queue.complete({first: b"one", second: b"two"}, lease.id)
        queue.fail([third], lease.id, delay=1)
        queue.release([fourth], lease.id)
        queue.extend(lease.id, _LEASE_SECONDS)
        queue.remove(others, lease.id)

    def _judge(self) -> list[str]:
        batches = [f"batch {number}" for number in range(self._rounds // ROUNDS_A_BATCH + 1)]
        with queueber.connect(self._address, tls=self._tls) as client:
            queue = client.queue(QUEUE)
            while (stats := queue.stats()).ready or stats.delayed:
                observe_drain(ObservedQueue(queue, self._recorder, "bystander"))
            final = {QUEUE: read_final_state(queue, batches)}
        return [str(each) for each in check(self._recorder.history, final)]
