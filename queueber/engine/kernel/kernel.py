"""The store, the source of ids and the agenda: what every transaction needs."""

from dataclasses import dataclass, field

from queueber.db.store.contract import Store
from queueber.engine.kernel.agenda import Agenda
from queueber.ids import IdSource


@dataclass(slots=True)
class Kernel:
    store: Store
    ids: IdSource
    agenda: Agenda = field(default_factory=Agenda)
