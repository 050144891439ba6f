"""Together: acknowledge, publish, add, complete and fail in one write, over queues and topics.

Every argument is checked before anything is done, as in the calls that do one of these alone.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from queueber.auth.roles import Action
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.settle import Outcomes
from queueber.engine.topics.groups import get_group
from queueber.engine.topics.together import Acknowledgement, QueueStep, together
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import MANY_MAX
from queueber.model import GroupAck, GroupKind, QueueSteps, Together, TogetherDone
from queueber.service.durable_ends import DurableEnds
from queueber.service.publish import Publishing, check_once, starts_of
from queueber.service.rights import check_right
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.validate.arguments import check_ids, one_for_each
from queueber.service.validate.items import (
    BACKOFF_DELAY_MS,
    check_delays_ms,
    check_errors,
    check_new_items,
    check_results,
)
from queueber.service.validate.topics import (
    check_group_name,
    check_new_topic_name,
    check_publications,
    check_topic_name,
)

MayAcknowledge = Callable[[Session, TopicState, str, int], None]
"""Refuses a caller if a partition of an ordered group has another consumer."""


class TogetherCalls:
    def __init__(
        self,
        shell: Shell,
        publishing: Publishing,
        ends: DurableEnds,
        check_consumer: MayAcknowledge,
    ) -> None:
        self._shell = shell
        self._publishing = publishing
        self._ends = ends
        self._check_consumer = check_consumer

    def together(self, session: Session, asked: Together) -> Awaitable[TogetherDone]:
        """Do all of it, or nothing."""
        shell = self._shell
        if not (asked.publications or asked.acks or asked.queues):
            raise InvalidArgument("req: the call has no steps; give at least one")
        self._check(asked)
        self._check_rights(session, asked)
        steps = [self._step(each) for each in asked.queues]
        _check_distinct([each.queue.name for each in steps])
        acks = [self._acknowledgement(session, each) for each in asked.acks]
        shared = dict.fromkeys(each.group.queue for each in acks if each.lease)
        queues = [*[each.queue for each in steps], *shared]
        shell.write_gathered(self._publishing)  # those calls came before
        for queue in queues:
            shell.write_gathered(queue)
        topics, done = shell.run(None, self._run, asked, acks, steps)
        self._ends.written(starts_of([topics], [done.published]))
        for queue in queues:
            shell.after_write(queue)
        for step in steps:
            if step.outcomes.completed:
                shell.wakeups.fire((step.queue.queue_id, None))
        shell.wake_sweeper_for(shell.engine.agenda.next_ms())
        return shell.durable(done)

    def _run(
        self,
        tx: Transaction[Any],
        asked: Together,
        acks: Sequence[Acknowledgement],
        steps: Sequence[QueueStep],
    ) -> tuple[list[TopicState], TogetherDone]:
        publications = asked.publications
        topics = [self._publishing.topic_of(tx, each) for each in publications]
        check_once(topics, publications)
        to = list(zip(topics, publications, strict=True))
        return topics, together(tx, self._shell.engine.topics, to, acks, steps)

    # --- checks -----------------------------------------------------------------------------------

    def _check_rights(self, session: Session, asked: Together) -> None:
        if session.caller is None:
            return
        self._publishing.check_rights(session, asked.publications)
        for ack in asked.acks:
            topic = self._shell.engine.topics.find(ack.topic)
            name = ack.topic if topic is None else topic.name
            check_right(session, Action.WORK, "topic", name)
        for steps in asked.queues:
            if steps.add is not None:
                check_right(session, Action.ADD, "queue", steps.queue)
            if steps.add is None or steps.completed or steps.failed:
                check_right(session, Action.WORK, "queue", steps.queue)

    def _check(self, asked: Together) -> None:
        limits = self._shell.limits
        for publication in asked.publications:
            check_new_topic_name(publication.topic, "topic")
        if asked.publications:
            check_publications(
                asked.publications,
                payload_bytes_max=limits.payload_bytes_max,
                message_bytes_max=limits.message_bytes_max,
            )
        count = sum(
            len(each.completed) + len(each.failed) + (len(each.add.contents) if each.add else 0)
            for each in asked.queues
        )
        count += sum(max(1, len(each.offsets)) for each in asked.acks)
        if count > MANY_MAX:
            raise ResourceExhausted(
                f"queues: the call is about {count} items and messages; the limit is {MANY_MAX}, "
                "send several calls"
            )

    def _acknowledgement(self, session: Session, ack: GroupAck) -> Acknowledgement:
        check_topic_name(ack.topic, "topic")
        check_group_name(ack.group)
        engine, now_ms = self._shell.engine.topics, self._shell.clock.now_ms()
        topic = engine.get(ack.topic, now_ms)
        group = get_group(topic, ack.group)
        topic.check_partition(ack.partition)
        if group.kind is GroupKind.SHARED:
            check_ids("lease", [ack.lease])
            if not ack.offsets:
                raise InvalidArgument("offsets: there are none; name the messages of the lease")
            if ack.first_offset is not None:
                raise InvalidArgument(
                    f"firstOffset: group {ack.group!r} is shared; name the messages in offsets"
                )
        elif ack.lease or ack.offsets:
            raise InvalidArgument(
                f"lease: group {ack.group!r} has none; give the offset up to which it is done"
            )
        else:
            self._check_consumer(session, topic, ack.group, ack.partition)
            if ack.first_offset is not None and ack.first_offset >= ack.offset:
                raise InvalidArgument(
                    f"firstOffset: {ack.first_offset} is not before offset {ack.offset}"
                )
        return Acknowledgement(
            topic, group, ack.partition, ack.offset, ack.lease, ack.offsets, ack.first_offset
        )

    def _step(self, steps: QueueSteps) -> QueueStep:
        limits = self._shell.limits
        queue: QueueState = self._shell.engine.queues.get(steps.queue)
        if steps.add is not None:
            check_new_items(
                steps.add,
                item_bytes_max=limits.item_bytes_max,
                message_bytes_max=limits.message_bytes_max,
            )
            if steps.add.origin is not None:
                raise InvalidArgument("origin: rows of loads cannot be added together with others")
            if steps.add.after or steps.add.after_batch:
                raise InvalidArgument("after: items that wait cannot be added together with others")
        add = steps.add if steps.add is not None and steps.add.contents else None
        return QueueStep(queue, add, self._outcomes(steps))

    def _outcomes(self, steps: QueueSteps) -> Outcomes:
        s = steps
        check_ids("complete.ids", s.completed)
        check_ids("complete.leases", s.completed_leases)
        check_ids("fail.ids", s.failed)
        check_ids("fail.leases", s.failed_leases)
        outcomes = Outcomes()
        if s.completed or s.completed_leases or s.results:
            outcomes.completed = s.completed
            outcomes.completed_leases = one_for_each(
                "complete.leases", s.completed_leases, len(s.completed)
            )
            check_results(s.results, len(s.completed), self._shell.limits.item_bytes_max)
            outcomes.results = s.results
        if s.failed or s.failed_leases or s.errors or s.delays_ms:
            count = len(s.failed)
            outcomes.failed = s.failed
            outcomes.failed_leases = one_for_each("fail.leases", s.failed_leases, count)
            outcomes.errors = one_for_each("fail.errors", s.errors, count)
            check_errors(outcomes.errors)
            delays_ms = one_for_each("fail.delaysMs", s.delays_ms or [BACKOFF_DELAY_MS], count)
            check_delays_ms(delays_ms)
            outcomes.delays_ms = [None if d == BACKOFF_DELAY_MS else d for d in delays_ms]
        return outcomes


def _check_distinct(queues: Sequence[str]) -> None:
    for name in queues:
        if queues.count(name) > 1:
            raise InvalidArgument(
                f"queues: {name!r} is there twice; put all that happens in it into one step"
            )
