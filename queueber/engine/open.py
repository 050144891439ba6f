"""Open: read what the engine needs to know, and finish what a crash has left half done."""

from queueber.db.store.contract import Store
from queueber.engine.kernel.state import Engine, read_engine
from queueber.engine.loads.commit import finish_commits
from queueber.ids import IdSource


def open_engine(store: Store, ids: IdSource) -> Engine:
    engine = read_engine(store, ids)
    finish_commits(engine)
    return engine
