"""Who consumes the partitions of ordered groups, and who takes over from whom.

A partition of an ordered group has one consumer. A new one takes over: the one before it is told,
gets nothing more, and cannot acknowledge any more. The new one goes on at the cursor.
"""

from collections.abc import Sequence
from functools import partial

from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import Aborted
from queueber.service.session import Session
from queueber.service.subscription import Subscription

Owner = TopicState | QueueState
"""What has groups: a topic, or a queue whose results are read."""
Place = tuple[Owner, str, int]
"""A partition of a group."""


class Consumers:
    def __init__(self) -> None:
        self._of: dict[Place, Subscription] = {}
        self._of_all: dict[tuple[Owner, str], Subscription] = {}
        """Who has all partitions of a group, also those that are added later."""

    def take_over(
        self,
        owner: Owner,
        group: str,
        partitions: Sequence[int],
        subscription: Subscription,
        *,
        has_all: bool = False,
    ) -> None:
        """The subscription is the consumer of these partitions from now on; if it `has_all`, also
        of those that are added later."""
        places = [(owner, group, partition) for partition in partitions]
        for place in places:
            before = self._consumer(*place)
            if before is not None:
                before.end(
                    Aborted(
                        f"consumer {subscription.name!r} has taken over partition {place[2]} of "
                        f"group {group!r}"
                    )
                )
            self._of[place] = subscription
        if has_all:
            self._of_all[owner, group] = subscription
        whole = (owner, group)
        subscription.when_over.append(partial(self._let_go, whole, places, subscription))

    def _consumer(self, owner: Owner, group: str, partition: int) -> Subscription | None:
        return self._of.get((owner, group, partition)) or self._of_all.get((owner, group))

    def _let_go(
        self, whole: tuple[Owner, str], places: Sequence[Place], subscription: Subscription
    ) -> None:
        for place in places:
            if self._of.get(place) is subscription:
                del self._of[place]
        if self._of_all.get(whole) is subscription:
            del self._of_all[whole]

    def check(self, session: Session, owner: Owner, group: str, partition: int) -> None:
        """Refuse a caller if a partition has another consumer: what the caller has of it was taken
        over."""
        active = self._consumer(owner, group, partition)
        if active is not None and active.session is not session:
            raise Aborted(
                f"consumer {active.name!r} has partition {partition} of group {group!r}, and only "
                "its connection may acknowledge"
            )
