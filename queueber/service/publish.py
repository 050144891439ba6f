"""Publish: messages to many topics in one write, and small calls of many callers in one.

Publications that have messages and nothing else are gathered while a sync is under way, as adds
are. Those for one topic become one publication, so that many small calls make a few long blocks.
A call that fails fails alone: what the engine refuses together is run again call by call.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import structlog

from queueber.auth.roles import Action
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.describe import count_names
from queueber.engine.topics.publish import publish
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import InvalidArgument, QueueberError
from queueber.model import Publication, Published, TopicSettings
from queueber.model.joined import join_publications
from queueber.service.durable_ends import DurableEnds
from queueber.service.loop import fail
from queueber.service.rights import audit_creation, check_may_create, check_right
from queueber.service.session import Session
from queueber.service.shared_writes import Call, split_ids
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle, check_topic_alive
from queueber.service.validate.topics import check_new_topic_name, check_publications

_log = structlog.get_logger("queueber.service")

To = tuple[TopicState | None, Publication]
"""A publication, and its topic if the caller has it already; else it is found by name."""


@dataclass(frozen=True, slots=True)
class _AllTopics:
    """What publications are gathered for: one place for all topics."""

    state: "Publishing"
    session: Session

    def check_alive(self) -> None:
        pass


class Publishing:
    def __init__(self, shell: Shell, ends: DurableEnds) -> None:
        self._shell = shell
        self._ends = ends

    def publish(
        self, session: Session, publications: Sequence[Publication]
    ) -> Awaitable[list[Published]]:
        """Publish to topics by name: all messages, or none."""
        for each in publications:
            check_new_topic_name(each.topic, "topic")
        return self._publish(session, [(None, each) for each in publications])

    def publish_to(
        self, topic: TopicHandle, publication: Publication
    ) -> Awaitable[list[Published]]:
        check_topic_alive(topic.state, self._shell.clock.now_ms())
        return self._publish(topic.session, [(topic.state, publication)])

    def _publish(self, session: Session, to: list[To]) -> Awaitable[list[Published]]:
        shell, limits = self._shell, self._shell.limits
        check_publications(
            [each for _, each in to],
            payload_bytes_max=limits.payload_bytes_max,
            message_bytes_max=limits.message_bytes_max,
        )
        self.check_rights(session, [each for topic, each in to if topic is None])
        for topic, each in to:
            if topic is not None:
                self._check_may_close(session, each, topic.name)
        call = Call((to,), sum([len(each.messages.payloads) for _, each in to]))
        call.future = shell.loop.create_future()
        if all(_is_plain(each) for _, each in to):
            shell.gather(_AllTopics(self, session), self, self._write_calls, call)
        else:
            shell.write_gathered(self)
            self._write_together([call])
        answer: Awaitable[list[Published]] = call.future
        return answer

    def written_first(self, session: Session) -> None:
        """Write the calls of the session that are gathered: what follows comes after them."""
        self._shell.write_gathered(self, session)

    def check_first(self, session: Session, name: str, first: Publication | None) -> None:
        """Refuse what a new topic cannot begin with. Who may create it may also close it."""
        if first is None:
            return
        limits = self._shell.limits
        check_publications(
            [first],
            payload_bytes_max=limits.payload_bytes_max,
            message_bytes_max=limits.message_bytes_max,
        )
        if first.messages.payloads:
            check_right(session, Action.ADD, "topic", name)

    # --- rights -----------------------------------------------------------------------------------

    def check_rights(self, session: Session, publications: Sequence[Publication]) -> None:
        """Refuse a caller that may not publish to one of the topics, or not create it."""
        caller = session.caller
        if caller is None:
            return
        may_make, created = self._shell.limits.auto_create_topics, []
        for each in publications:
            topic = self._shell.engine.topics.find(each.topic)
            name = each.topic if topic is None else topic.name
            check_right(session, Action.ADD, "topic", name)
            self._check_may_close(session, each, name)
            if may_make and each.may_create and self.check_may_make(each.topic, session):
                created.append(name)
            # The topic may be gone when the call is written.
            each.may_create &= caller.may(Action.ADMINISTER, "topic", name)
        for name in dict.fromkeys(created):
            audit_creation(session, "topic", name)

    def _check_may_close(self, session: Session, publication: Publication, name: str) -> None:
        if publication.closes:
            check_right(session, Action.ADMINISTER, "topic", name)

    def check_may_make(self, name: str, session: Session) -> bool:
        """Whether the topic does not exist. Refuse a caller that may not create it then."""
        if session.caller is None:
            return False
        engine = self._shell.engine
        found = engine.topics.find(name)
        is_missing = found is None or found.expires_at_ms <= self._shell.clock.now_ms()
        if is_missing:
            check_may_create(session, "topic", name, partial(count_names, engine.store))
        return is_missing

    # --- writing ----------------------------------------------------------------------------------

    def _write_calls(self, _: object, calls: list[Call]) -> None:
        try:
            self._write_together(calls)
        except Exception as error:  # noqa: BLE001  it belongs to whoever waits
            if len(calls) > 1 and isinstance(error, QueueberError):
                for call in calls:
                    self._write_calls(None, [call])
            else:
                for call in calls:
                    fail(call.future, error)

    def _write_together(self, calls: Sequence[Call]) -> None:
        shell = self._shell
        topics, answers = shell.run(None, self._publish_calls, calls)
        self._ends.written(starts_of(topics, answers))
        for call, own in zip(calls, answers, strict=True):
            shell.answer(call, own)
        shell.wake_sweeper_for(shell.engine.agenda.next_ms())

    def _publish_calls(
        self, tx: Transaction[None], calls: Sequence[Call]
    ) -> tuple[list[list[TopicState]], list[list[Published]]]:
        """Of each call the topics, and where its messages are."""
        engine = self._shell.engine.topics
        joined = _Joined()
        topics: list[list[TopicState]] = []
        for call in calls:
            to: list[To] = call.columns[0]
            own = [self.topic_of(tx, each, topic) for topic, each in to]
            check_once(own, [each for _, each in to])
            for topic, (_, publication) in zip(own, to, strict=True):
                joined.add(topic, publication)
            topics.append(own)
        published = iter(joined.split(publish(tx, engine, joined.publications)))
        answers = [[next(published) for _ in own] for own in topics]
        return topics, answers

    def topic_of(
        self, tx: Transaction[Any], publication: Publication, topic: TopicState | None = None
    ) -> TopicState:
        """The topic of a publication, found by its name unless it is given; created if there is
        none and the server may."""
        engine = self._shell.engine.topics
        if topic is None:
            topic = engine.find(publication.topic, tx)
            is_gone = topic is None or topic.expires_at_ms <= tx.now_ms
            if is_gone and self._shell.limits.auto_create_topics and publication.may_create:
                topic, _ = engine.create(tx, publication.topic, TopicSettings())
                _log.debug("topic_created", topic=publication.topic)
            else:
                topic = engine.get(publication.topic, tx.now_ms, tx)
        else:
            check_topic_alive(topic, tx.now_ms)
        topic.use_in(tx)
        return topic


def _is_plain(publication: Publication) -> bool:
    """Whether it may be joined with others."""
    return not (
        publication.producer
        or publication.expected_offset is not None
        or publication.closes
        or publication.text_sequence
        or any(publication.messages.dedup_ids)
    )


def check_once(topics: Sequence[TopicState], publications: Sequence[Publication]) -> None:
    """The engine looks up producers and dedup ids once for each topic of a call."""
    if len(set(topics)) == len(topics) or all(map(_is_plain, publications)):
        return
    for at, topic in enumerate(topics):
        if topics.count(topic) > 1 and not _is_plain(publications[at]):
            raise InvalidArgument(
                f"publications: topic {topic.name!r} is there twice; a call has one publication "
                "to a topic if it has a producer, dedup ids, an expected offset or a text "
                "sequence, or closes it"
            )


def starts_of(
    topics: Sequence[Sequence[TopicState]], answers: Sequence[Sequence[Published]]
) -> list[tuple[TopicState, int, int]]:
    """The first new offset of each partition that has messages, or was closed."""
    firsts: dict[tuple[TopicState, int], int] = {}
    for own, published in zip(topics, answers, strict=True):
        for topic, each in zip(own, published, strict=True):
            if each.is_repeat:
                continue
            partitions: Sequence[int] = each.partitions
            if topic.record.is_closed:  # by this, and nobody hears of it before it is durable
                for at in range(topic.partitions):
                    firsts.setdefault((topic, at), topic.next_offset(at))
            for partition, offset in _first_offsets(partitions, each):
                place = topic, partition
                firsts[place] = min(offset, firsts.get(place, offset))
    return [(topic, partition, offset) for (topic, partition), offset in firsts.items()]


def _first_offsets(partitions: Sequence[int], each: Published) -> list[tuple[int, int]]:
    if isinstance(each.offsets, range):
        return [(partitions[0], each.offsets[0])]
    duplicates = each.duplicates or [False] * len(partitions)
    rows = zip(partitions, each.offsets, duplicates, strict=True)
    return [(partition, offset) for partition, offset, is_known in rows if not is_known]


@dataclass(slots=True)
class _Open:
    """Publications to one partition, or one topic, that are joined."""

    at: int
    first: Publication
    parts: list[Publication]


class _Joined:
    """Publications of many calls, those to one topic joined as far as their order allows."""

    def __init__(self) -> None:
        self._open: dict[TopicState, dict[int | None, _Open]] = {}
        self._all: list[tuple[TopicState, _Open]] = []
        self._places: list[_Open] = []

    def add(self, topic: TopicState, publication: Publication) -> None:
        own, partition = self._open.setdefault(topic, {}), publication.partition
        if own and (None in own) != (partition is None):
            own.clear()  # they may have partitions in common: keep their order
        found = own.get(partition)
        if (
            found is None
            or not _is_plain(publication)
            # They demand other things of the topic.
            or found.first.content_type != publication.content_type
            or found.first.schema_version != publication.schema_version
            or found.first.topic_number != publication.topic_number
            or found.first.one_partition != publication.one_partition
        ):
            found = own[partition] = _Open(len(self._all), publication, [])
            self._all.append((topic, found))
        found.parts.append(publication)
        self._places.append(found)

    @property
    def publications(self) -> list[tuple[TopicState, Publication]]:
        return [(topic, join_publications(each.parts)) for topic, each in self._all]

    def split(self, published: Sequence[Published]) -> list[Published]:
        """What each of the publications got, in the order in which they were added."""
        split = [
            iter(_split(own, [len(part.messages.payloads) for part in each.parts]))
            for (_, each), own in zip(self._all, published, strict=True)
        ]
        return [next(split[each.at]) for each in self._places]


def _split(published: Published, counts: Sequence[int]) -> list[Published]:
    if len(counts) == 1:
        return [published]
    p: Any = published
    bounds = list(pairwise(accumulate(counts, initial=0)))
    split = [
        Published(p.at_ms, p.partitions[a:b], p.offsets[a:b], ids, p.sequences[a:b])
        for (a, b), ids in zip(bounds, split_ids(p.ids, counts), strict=True)
    ]
    if p.end_offset:
        for each in split:
            each.end_offset, each.origin = each.offsets[-1] + 1, p.origin
    return split
