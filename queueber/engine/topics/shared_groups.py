"""Shared groups."""

from queueber.db.store.contract import Store
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.group import Group


def put_positions(tx: object, group: Group, offsets: dict[int, int]) -> None:
    raise NotImplementedError


def floor(topic: object, group: Group, partition: int) -> int:
    raise NotImplementedError


def reset(tx: object, group: Group, offsets: dict[int, int]) -> None:
    raise NotImplementedError


def pause(tx: object, group: Group, until_ms: int) -> None:
    raise NotImplementedError


def lag(queue: QueueState) -> int:
    raise NotImplementedError


def open_shared(store: Store, topic: object, group: Group) -> QueueState:
    raise NotImplementedError
