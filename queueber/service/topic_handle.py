"""A topic as one session holds it: adapters keep it, and give it to every verb."""

from dataclasses import dataclass

from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import not_found
from queueber.errors import NotFound
from queueber.service.session import Session


@dataclass(frozen=True, slots=True)
class TopicHandle:
    state: TopicState
    """For the service alone. It stays the same when the topic is deleted and created anew."""
    session: Session

    @property
    def name(self) -> str:
        return self.state.name


def check_topic_alive(topic: TopicState, now_ms: int) -> None:
    if not topic.is_alive(now_ms):
        raise topic_deleted(topic)


def topic_deleted(topic: TopicState) -> NotFound:
    if topic.record.forks:
        return not_found(topic.name, topic.record.forks)
    return NotFound(f"topic {topic.name!r} was deleted, or has expired; ask for it again")
