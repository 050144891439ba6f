"""Open: read what the engine keeps in memory, and finish the commits that a crash interrupted."""

from dataclasses import dataclass

from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Store
from queueber.engine.kernel.agenda import Agenda
from queueber.engine.kernel.kernel import Kernel
from queueber.engine.loads.commit import finish_commits
from queueber.engine.loads.loads import AllLoads
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues
from queueber.engine.queue.sweep import DUTIES
from queueber.ids import IdSource


@dataclass(slots=True)
class Engine:
    """An open store, its queues and its loads. Only transactions change it."""

    kernel: Kernel
    queues: Queues
    loads: AllLoads

    @property
    def store(self) -> Store:
        return self.kernel.store

    @property
    def ids(self) -> IdSource:
        return self.kernel.ids

    @property
    def agenda(self) -> Agenda:
        return self.kernel.agenda


def open_engine(store: Store, ids: IdSource) -> Engine:
    kernel = Kernel(store, ids)
    queues = Queues(kernel)
    loads = AllLoads(store)
    queues.register(loads.queue_opened, loads.queue_deleted)
    queues.read()
    for queue in queues:
        _put_on_agenda(kernel, queue)
    finish_commits(kernel, loads)
    return Engine(kernel, queues, loads)


def _put_on_agenda(kernel: Kernel, queue: QueueState) -> None:
    due_ms = DUTIES.due_ms(queue, queue.results.head.last_ms)
    if due_ms < NEVER_MS:
        kernel.agenda.schedule(queue.queue_id, due_ms)
