"""Topics: creating, configuring, closing and deleting them, and what they hold."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.describe import topic_info
from queueber.engine.topics.forks import fork
from queueber.engine.topics.publish import publish_first
from queueber.engine.topics.read import find_id, find_sequence
from queueber.engine.topics.schemas import put_first
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import not_found
from queueber.engine.topics.trim import trim_topic
from queueber.errors import InvalidArgument
from queueber.limits import TOPIC_LIST_MAX
from queueber.model import ForkAt, Position, Publication, Published, TopicConfig, TopicInfo
from queueber.service.durable_ends import DurableEnds
from queueber.service.publish import Publishing, starts_of
from queueber.service.rights import audit_creation, check_any_right, seen_topics
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle, check_topic_alive
from queueber.service.validate.topics import (
    check_config,
    check_first_schema,
    check_message_id,
    check_new_topic_name,
    check_topic_name,
    check_topic_prefix,
)

T = TypeVar("T")


class Topics:
    def __init__(
        self,
        shell: Shell,
        publishing: Publishing,
        ends: DurableEnds,
        gone: Callable[[TopicState], None],
        used: Callable[[TopicState], None],
    ) -> None:
        """`gone` is called when a topic was deleted, `used` whenever it is used."""
        self._gone = gone
        self._used = used
        self._shell = shell
        self._publishing = publishing
        self._ends = ends

    # --- the set of them --------------------------------------------------------------------------

    def open_topic(
        self, name: str, session: Session, *, must_exist: bool
    ) -> Awaitable[TopicHandle]:
        """The topic, created with default settings when it is missing and may be."""
        shell, topics = self._shell, self._shell.engine.topics
        check_topic_name(name)
        check_any_right(session, "topic", self.real_name(name))
        self._publishing.written_first(session)
        now_ms = shell.clock.now_ms()
        found = topics.find(name)
        is_there = found is not None and found.expires_at_ms > now_ms
        if must_exist or is_there or not shell.limits.auto_create_topics:
            topic = topics.get(name, now_ms)
            self._use(topic)
            return shell.durable(TopicHandle(topic, session))
        config = TopicConfig()
        self._publishing.check_may_make(name, session)
        audit_creation(session, "topic", name)
        return self._create(name, config, session, lambda topic, _: TopicHandle(topic, session))

    def create_topic(
        self,
        name: str,
        config: TopicConfig,
        session: Session,
        first: Publication | None = None,
        schema: bytes = b"",
    ) -> Awaitable[Published | None]:
        """Where its first messages are; None if it exists, with the same configuration."""
        config = replace(config, partitions=config.partitions or 1)
        check_config(config)
        if schema:
            check_first_schema(config, schema)
        self._publishing.check_first(session, name, first)
        self._publishing.check_may_make(name, session)
        return self._create(name, config, session, lambda _, first: first, first, schema)

    def _create(
        self,
        name: str,
        config: TopicConfig,
        session: Session,
        answer: Callable[[TopicState, Published | None], T],
        first: Publication | None = None,
        schema: bytes = b"",
    ) -> Awaitable[T]:
        check_new_topic_name(name)
        shell = self._shell
        shell.write_gathered(self._publishing)
        topic, published = shell.run(None, self._put, name, config, first, schema)
        if published is not None:
            shell.log_topic(session, "topic_created", name, {"config": config})
            self._wrote_first(topic, published)
        self._woken()
        return shell.durable(answer(topic, published))

    def _put(
        self,
        tx: Transaction[Any],
        name: str,
        config: TopicConfig,
        first: Publication | None,
        schema: bytes,
    ) -> tuple[TopicState, Published | None]:
        """The topic, and if it is new where its first messages are."""
        topics = self._shell.engine.topics
        topic, is_new = topics.create(
            tx,
            name,
            config.settings,
            partitions=config.partitions,
            content_type=config.content_type,
            alias=config.alias,
        )
        if is_new and schema:
            put_first(tx, topic, schema)
        return topic, publish_first(tx, topics, topic, first) if is_new else None

    def _wrote_first(self, topic: TopicState, published: Published) -> None:
        """Nobody reads the messages of a new topic before they are durable."""
        self._ends.written(starts_of([[topic]], [[published]]))

    def configure_topic(self, name: str, config: TopicConfig, session: Session) -> Awaitable[None]:
        """Replace settings and alias; `partitions` may grow, and 0 leaves them as they are."""
        check_config(config, is_new=False)
        topic = self._find(name)

        def configure(tx: Transaction[Any]) -> None:
            self._shell.engine.topics.configure(
                tx, topic, config.settings, partitions=config.partitions, alias=config.alias
            )

        return self.write(topic, session, configure, "topic_configured", {"config": config})

    def delete_topic(self, name: str, session: Session) -> Awaitable[bool]:
        """False if there is no such topic."""
        check_topic_name(name)
        shell = self._shell
        topic = shell.engine.topics.find(name)
        if topic is None or not topic.is_alive(shell.clock.now_ms()):
            return shell.durable(False)
        engine = shell.engine.topics
        done = self.write(topic, session, lambda tx: engine.delete(tx, topic), "topic_deleted", {})
        self._gone(topic)

        async def answer() -> bool:
            await done
            return True

        return answer()

    def list_topics(
        self, prefix: str, after: str, limit: int, session: Session
    ) -> tuple[list[str], bool]:
        """Names in order, and whether there are more."""
        check_topic_prefix(prefix)
        check_topic_prefix(after)
        limit = min(limit, TOPIC_LIST_MAX) or TOPIC_LIST_MAX
        names = partial(self._shell.engine.topics.names, now_ms=self._shell.clock.now_ms())
        return seen_topics(session, names, prefix, after, limit)

    def created_at_ms(self, names: Sequence[str]) -> list[int]:
        """When each of some topics that were just listed was created."""
        found = map(self._shell.engine.topics.find, names)
        return [0 if topic is None else topic.record.created_at_ms for topic in found]

    def real_name(self, name: str) -> str:
        """The name of the topic that has this name or alias; rights are those on that."""
        topic = self._shell.engine.topics.find(name)
        return name if topic is None else topic.name

    def _find(self, name: str) -> TopicState:
        check_topic_name(name)
        return self._shell.engine.topics.get(name, self._shell.clock.now_ms())

    def describe_topic(self, name: str, session: Session) -> Awaitable[TopicInfo]:
        """What there is of a topic, also of one that only its forks keep. No use of it: one that is
        deleted when nobody uses it is not kept by this."""
        check_topic_name(name)
        self._publishing.written_first(session)
        shell, topics = self._shell, self._shell.engine.topics
        now_ms, topic = shell.clock.now_ms(), topics.find(name)
        if topic is None or not (topic.is_alive(now_ms) or topic.record.forks):
            raise not_found(name, 0)
        return shell.durable(self._info(topic, now_ms))

    # --- one of them ------------------------------------------------------------------------------

    def alive(self, topic: TopicHandle) -> TopicState:
        """The topic, used now: that keeps one alive which is deleted when nobody uses it."""
        check_topic_alive(topic.state, self._shell.clock.now_ms())
        self._use(topic.state)
        return topic.state

    def _use(self, topic: TopicState) -> None:
        self._used(topic)
        if topic.use(self._shell.clock.now_ms()):
            self._shell.run(None, topic.note_use)

    def describe(self, topic: TopicHandle) -> TopicInfo:
        self._publishing.written_first(topic.session)
        return self._info(self.alive(topic))

    def _info(self, topic: TopicState, now_ms: int = 0) -> TopicInfo:
        engine = self._shell.engine
        info = topic_info(topic, engine.topics, now_ms)
        return replace(info, sources=engine.routes.sources_of(topic))

    def close(self, topic: TopicHandle) -> Awaitable[None]:
        """Take no more messages. May be repeated."""
        state, engine = self.alive(topic), self._shell.engine.topics

        def close(tx: Transaction[Any]) -> None:
            engine.close(tx, state)

        done = self.write(state, topic.session, close, "topic_closed", {})
        ends = [(state, each, state.next_offset(each)) for each in range(state.partitions)]
        self._ends.written(ends)
        return done

    def trim(self, topic: TopicHandle, partition: int | None, to: Position) -> Awaitable[int]:
        """Delete the messages before a position, of one partition or of all; how many went."""
        state = self.alive(topic)
        facts: dict[str, object] = {"partition": partition, "to": to}
        return self.write(
            state, topic.session, partial(_trim, state, partition, to), "topic_trimmed", facts
        )

    def fork(
        self,
        topic: TopicHandle,
        name: str,
        config: TopicConfig,
        at: ForkAt,
        first: Publication | None = None,
    ) -> Awaitable[Published | None]:
        """Create a topic that shares the messages of this one up to an offset. Answers where its
        first messages are; None if the same fork exists."""
        check_new_topic_name(name)
        check_config(config, is_new=False)
        for field, value in (("offset", at.offset), ("cutBytes", at.cut_bytes)):
            if at.partition is None and value:
                raise InvalidArgument(
                    f"{field}: {value} is given without a partition; name the partition that it "
                    "is of"
                )
        self._publishing.check_first(topic.session, name, first)
        state, engine = self.alive(topic), self._shell.engine.topics
        if config.partitions not in (0, state.partitions):
            raise InvalidArgument(
                f"partitions: {config.partitions} for a fork of a topic that has "
                f"{state.partitions}; a fork has as many, give 0"
            )

        self._publishing.check_may_make(name, topic.session)

        def make(tx: Transaction[Any]) -> tuple[TopicState, Published | None]:
            made, is_new = fork(tx, engine, state, name, config, at)
            return made, publish_first(tx, engine, made, first) if is_new else None

        shell = self._shell
        shell.write_gathered(self._publishing)  # those calls came before
        made, published = shell.run(None, make)
        shell.log_topic(topic.session, "topic_forked", state.name, {"fork": name})
        if published is not None:
            if at.cut_bytes:
                self._ends.written([(made, at.partition or 0, at.offset)])
            self._wrote_first(made, published)
        self._woken()
        return shell.durable(published)

    def find(self, topic: TopicHandle, message_id: bytes, sequence: int) -> tuple[int, int] | None:
        """Partition and offset of a message, by its id or else by its sequence."""
        state, store = self.alive(topic), self._shell.engine.store
        if message_id:
            check_message_id(message_id)
            return find_id(store, state, message_id)
        offset = find_sequence(store, state, 0, sequence)
        return (0, offset) if offset < state.next_offset(0) else None

    def write(
        self,
        topic: TopicState,
        session: Session,
        op: Callable[[Transaction[Any]], T],
        event: str,
        facts: dict[str, object],
    ) -> Awaitable[T]:
        shell = self._shell
        shell.write_gathered(self._publishing)  # those calls came before
        answer = shell.run(None, op)
        shell.log_topic(session, event, topic.name, facts)
        self._woken()
        return shell.durable(answer)

    def _woken(self) -> None:
        self._shell.wake_sweeper_for(self._shell.engine.agenda.next_ms())


def _trim(topic: TopicState, partition: int | None, to: Position, tx: Transaction[Any]) -> int:
    if partition is not None:
        topic.check_partition(partition)
    return trim_topic(tx, topic, partition, to)
