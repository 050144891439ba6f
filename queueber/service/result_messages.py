"""The results of a queue under the name of a topic, and as its messages."""

from collections.abc import Sequence
from dataclasses import dataclass

from queueber.db.records.blocks import pack_attributes
from queueber.engine.log import Log
from queueber.model import PackedMessages, Result
from queueber.service.session import QueueHandle, Session
from queueber.service.validate.topics import RESERVED

_END = "/results"


def queue_of(name: str) -> str | None:
    """The queue whose results the name is that of; None if it is that of a topic."""
    if not name.startswith(RESERVED) or not name.endswith(_END):
        return None
    return name.removeprefix(RESERVED).removesuffix(_END)


@dataclass(frozen=True, slots=True)
class ResultsHandle:
    """The results of a queue as one session holds them."""

    queue: QueueHandle

    @property
    def session(self) -> Session:
        return self.queue.session

    @property
    def name(self) -> str:
        return f"{RESERVED}{self.queue.name}{_END}"

    @property
    def log(self) -> Log:
        return self.queue.state.results


def messages_of(results: Sequence[Result]) -> list[PackedMessages]:
    """One for each result: their ids are those of items, which do not follow each other."""
    return [
        PackedMessages(
            each.offset,
            1,
            each.completed_at_ms,
            each.id,
            0,
            len(each.result).to_bytes(4, "little"),
            each.result,
            [each.key.encode()],
            [pack_attributes(_attributes(each))],
        )
        for each in results
    ]


def _attributes(result: Result) -> dict[str, str]:
    own = {"queueber.id": result.id.hex(), "queueber.attempt": str(result.attempt)}
    if result.batch:
        own["queueber.batch"] = result.batch
    return {**result.attributes, **own}
