"""Circles: a topic whose bridge fills a queue whose events go to the topic would grow for ever."""

from collections.abc import Callable, Iterable

from queueber.engine.topics.bridge import bridged_queues
from queueber.engine.topics.topics import Topics
from queueber.errors import ResourceExhausted
from queueber.ids import QueueId
from queueber.limits import ROUTE_CHAIN_MAX

TopicsOf = Callable[[QueueId], Iterable[QueueId]]
"""The topics that get an event for every item that is added to a queue."""


def does_lead_to(topics: Topics, topics_of: TopicsOf, start: QueueId, queue: QueueId) -> bool:
    """Whether messages of a topic become items of a queue, through bridges and routes."""
    found, left = {start}, [start]
    while left:
        topic = topics.load(left.pop())
        if topic is None or topic.record.is_deleted:
            continue
        for each in bridged_queues(topics, topic):
            if each.queue_id == queue:
                return True
            new = set(topics_of(each.queue_id)) - found
            found |= new
            left += sorted(new)
        if len(found) > ROUTE_CHAIN_MAX:
            raise ResourceExhausted(
                f"messages of the topic go through bridges and routes to more than "
                f"{ROUTE_CHAIN_MAX} topics, the limit"
            )
    return False
