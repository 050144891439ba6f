"""Open: read what the engine keeps in memory, and finish the commits that a crash interrupted."""

from functools import partial

from queueber.db.store.contract import Store
from queueber.engine.flow.flow import Flow
from queueber.engine.kernel.transaction import Kernel
from queueber.engine.loads.commit import finish_commits
from queueber.engine.loads.loads import AllLoads
from queueber.engine.queue.queues import Queues
from queueber.engine.queue.sweep import first_due_ms
from queueber.engine.routes.routes import Routes
from queueber.engine.schedules.schedules import Schedules
from queueber.engine.topics.sweep import schedule
from queueber.engine.topics.topics import Topics
from queueber.ids import IdSource


class Engine:
    """An open store, its queues, loads, topics, routes, schedules and callbacks. Only transactions
    change it."""

    def __init__(
        self,
        kernel: Kernel,
        queues: Queues,
        loads: AllLoads,
        topics: Topics,
        routes: Routes,
        schedules: Schedules,
        flow: Flow,
    ) -> None:
        self.kernel = kernel
        self.store, self.ids, self.agenda = kernel.store, kernel.ids, kernel.agenda
        self.queues = queues
        self.loads = loads
        self.topics = topics
        self.routes = routes
        self.schedules = schedules
        self.flow = flow


def open_engine(store: Store, ids: IdSource) -> Engine:
    kernel = Kernel(store, ids)
    queues = Queues(kernel)
    loads = AllLoads(store)
    queues.register(loads.queue_opened, loads.queue_deleted)
    flow = Flow(queues)
    queues.read()
    for queue in queues:
        kernel.agenda.schedule(queue.queue_id, first_due_ms(queue, queue.results.head.last_ms))
    finish_commits(kernel, loads)
    topics = Topics(kernel, queues)
    topics.when_loaded = partial(schedule, kernel)
    routes = Routes(queues, topics, loads)
    routes.read(store)
    schedules = Schedules(kernel, queues)
    schedules.read(store)
    return Engine(kernel, queues, loads, topics, routes, schedules, flow)
