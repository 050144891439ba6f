"""Groups of topics: creating and describing them, and how far they are."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics import groups
from queueber.engine.topics.group import Group, Stop
from queueber.engine.topics.group_ack import acknowledge_shared
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import QueueberError
from queueber.model import GroupInfo, GroupKind, GroupSettings, Position
from queueber.service.consumers import Consumers
from queueber.service.loop import fail
from queueber.service.publish import Publishing
from queueber.service.session import QueueHandle, Session
from queueber.service.shared_writes import Call
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle, check_topic_alive
from queueber.service.topics import Topics
from queueber.service.validate.items import check_pause_ms
from queueber.service.validate.topics import check_group_name, check_group_settings

_log = structlog.get_logger("queueber.service")

T = TypeVar("T")

Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class _AllGroups:
    """What acknowledgements are gathered for: one place for all groups."""

    state: Publishing
    session: Session

    def check_alive(self) -> None:
        pass


class Groups:
    def __init__(
        self,
        shell: Shell,
        topics: Topics,
        publishing: Publishing,
        consumers: Consumers,
        gone: Callable[[QueueState], None],
    ) -> None:
        """`gone` is called when a shared group was deleted."""
        self._gone = gone
        self._opened: WeakKeyDictionary[TopicState, WeakSet[QueueState]] = WeakKeyDictionary()
        self._shell = shell
        self._topics = topics
        self._publishing = publishing
        self._consumers = consumers
        self.consumers: Callable[[TopicState, str], Sequence[str]] = lambda _topic, _group: ()
        """Set by the subscriptions: the names of the consumers of a group."""
        self.changed: Callable[[TopicState, str], None] = lambda _topic, _group: None
        """Set by the subscriptions: a group was paused, resumed or deleted."""
        self.moved: Callable[[TopicState, str, int | None], None] = lambda _topic, _group, _at: None
        """Set by the subscriptions: a group was reset, in one partition or in all."""

    # --- the set of them --------------------------------------------------------------------------

    def create_group(
        self, topic: TopicHandle, name: str, settings: GroupSettings, at: Position
    ) -> Awaitable[bool]:
        """Whether it is new; one that exists must have the same settings."""
        return self._shell.durable(self.create(topic, name, settings, at))

    def create(
        self,
        topic: TopicHandle,
        name: str,
        settings: GroupSettings,
        at: Position,
        partition: int | None = None,
    ) -> bool:
        """As `create_group`, without waiting until it is durable. A shared group may begin one
        `partition` only."""
        check_group_name(name)
        check_group_settings(settings, self._shell.limits.item_bytes_max)
        state = self._topics.alive(topic)

        def create(tx: Transaction[Any]) -> bool:
            engine = self._shell.engine.topics
            return groups.create_group(tx, engine, state, name, settings, at, partition=partition)[
                1
            ]

        facts: Facts = {"settings": settings}
        return self._run(topic, name, create, "group_created", lambda new: facts if new else None)

    def delete_group(self, topic: TopicHandle, name: str) -> Awaitable[bool]:
        """False if there is no such group."""
        check_group_name(name)
        state = self._topics.alive(topic)
        if name not in state.groups:
            return self._shell.durable(False)
        group = groups.get_group(state, name)

        def delete(tx: Transaction[Any]) -> bool:
            groups.delete_group(tx, self._shell.engine.topics, state, group)
            return True

        deleted = self._write(topic, name, delete, "group_deleted", lambda _: {})
        if (queue := group.opened_queue) is not None:
            self._gone(queue)
        self._shell.wake_reclaimer()
        return deleted

    def list_groups(self, topic: TopicHandle) -> list[GroupInfo]:
        state = self._topics.alive(topic)
        return [self._info(state, state.groups[name]) for name in sorted(state.groups)]

    def describe_group(self, topic: TopicHandle, name: str) -> GroupInfo:
        state = self._topics.alive(topic)
        return self._info(state, self.find(state, name))

    def _info(self, topic: TopicState, group: Group) -> GroupInfo:
        store, now_ms = self._shell.engine.store, self._shell.clock.now_ms()
        info = groups.group_info(store, topic, group, now_ms)
        return replace(info, consumers=self.consumers(topic, group.name))

    def find(self, topic: TopicState, name: str) -> Group:
        check_group_name(name)
        return groups.get_group(topic, name)

    # --- one of them ------------------------------------------------------------------------------

    def reset_group(
        self, topic: TopicHandle, name: str, partition: int | None, to: Position
    ) -> Awaitable[None]:
        """Move its cursor in one partition or in all, forward or back."""
        state = self._topics.alive(topic)
        group = self.find(state, name)

        def reset(tx: Transaction[Any]) -> None:
            groups.reset_group(tx, state, group, partition, to)

        facts: Facts = {"partition": partition, "to": to}
        done = self._write(topic, name, reset, "group_reset", lambda _: facts)
        self.moved(state, name, partition)
        return done

    def pause_group(self, topic: TopicHandle, name: str, for_ms: int) -> Awaitable[None]:
        """Give its consumers nothing for that long; 0: until it is resumed."""
        check_pause_ms(for_ms)
        until_ms = self._shell.clock.now_ms() + for_ms if for_ms else NEVER_MS
        return self._pause(topic, name, until_ms, "group_paused", {"for_ms": for_ms})

    def resume_group(self, topic: TopicHandle, name: str) -> Awaitable[None]:
        return self._pause(topic, name, 0, "group_resumed", {})

    def _pause(
        self, topic: TopicHandle, name: str, until_ms: int, event: str, facts: Facts
    ) -> Awaitable[None]:
        state = self._topics.alive(topic)
        group = self.find(state, name)

        def pause(tx: Transaction[Any]) -> None:
            groups.pause_group(tx, state, group, until_ms)

        return self._write(topic, name, pause, event, lambda _: facts)

    def open_group(self, topic: TopicHandle, name: str) -> QueueHandle:
        """A shared group as a queue."""
        state = self._topics.alive(topic)
        queue = self.find(state, name).queue
        self._opened.setdefault(state, WeakSet()).add(queue)
        return QueueHandle(queue, topic.session)

    def opened(self, topic: TopicState) -> list[QueueState]:
        """The shared groups of a topic that callers hold as queues, also after its deletion."""
        return list(self._opened.get(topic, ()))

    @staticmethod
    def tell_stop(group: Group, stop: Stop) -> None:
        """A bridge does not go on before somebody does something."""
        _log.warning(
            "bridge_stopped",
            topic=group.topic_name,
            group=group.name,
            queue=group.settings.queue,
            partition=stop.partition,
            offset=stop.offset,
            reason=stop.reason,
        )

    def _write(
        self,
        topic: TopicHandle,
        name: str,
        op: Callable[[Transaction[Any]], T],
        event: str,
        facts: Callable[[T], Facts | None],
    ) -> Awaitable[T]:
        return self._shell.durable(self._run(topic, name, op, event, facts))

    def _run(
        self,
        topic: TopicHandle,
        name: str,
        op: Callable[[Transaction[Any]], T],
        event: str,
        facts: Callable[[T], Facts | None],
    ) -> T:
        shell = self._shell
        shell.write_gathered(self._publishing)  # those calls came before
        group = topic.state.groups.get(name)
        queue = group.opened_queue if group is not None else None
        if queue is not None:
            shell.write_gathered(queue)
        answer = shell.run(None, op)
        told = facts(answer)
        if told is not None:
            shell.log_topic(topic.session, event, topic.name, {"group": name, **told})
        if queue is not None and not queue.is_deleted:
            shell.after_write(queue)
        self.changed(topic.state, name)
        shell.wake_sweeper_for(shell.engine.agenda.next_ms())
        return answer

    # --- acknowledging ----------------------------------------------------------------------------

    def ack(self, topic: TopicHandle, name: str, partition: int, offset: int) -> Awaitable[int]:
        """A group is done with the messages before `offset`; where it is then. A shared group is
        done with whatever its consumers have of them."""
        state = self._topics.alive(topic)
        group = self.find(state, name)
        if group.kind is GroupKind.SHARED:
            shell, queue = self._shell, group.queue
            shell.write_gathered(queue)
            at = shell.run(queue, acknowledge_shared, state, group, partition, offset)
            shell.after_write(queue)
            return shell.durable(at)
        self._consumers.check(topic.session, state, name, partition)
        return self.acknowledge(topic.session, state, group, partition, offset)

    def acknowledge(
        self, session: Session, topic: TopicState, group: Group, partition: int, offset: int
    ) -> Awaitable[int]:
        call = Call((topic, group, partition, offset), 1)
        self._shell.gather(_AllGroups(self._publishing, session), self, self._write_acks, call)
        answer: Awaitable[int] = call.future
        return answer

    def _write_acks(self, _: object, calls: list[Call]) -> None:
        shell = self._shell
        try:
            cursors = shell.run(None, _acknowledge, calls)
        except Exception as error:  # noqa: BLE001  it belongs to whoever waits
            if len(calls) > 1 and isinstance(error, QueueberError):
                for call in calls:
                    self._write_acks(None, [call])
            else:
                for call in calls:
                    fail(call.future, error)
            return
        for call, cursor in zip(calls, cursors, strict=True):
            shell.answer(call, cursor)
        shell.wake_sweeper_for(shell.engine.agenda.next_ms())


def _acknowledge(tx: Transaction[Any], calls: Sequence[Call]) -> list[int]:
    for call in calls:
        topic: TopicState = call.columns[0]
        check_topic_alive(topic, tx.now_ms)  # it may have expired since
    return [groups.acknowledge(tx, *call.columns) for call in calls]
