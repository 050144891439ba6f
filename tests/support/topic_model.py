"""The reference model of topics: what they promise, in the simplest form that can be checked.

It keeps every message in a list, and knows nothing of blocks, logs or numbers, but that messages of
one publish that go to one partition are deleted by age and count together.
"""

from dataclasses import dataclass, field, replace
from zlib import crc32

from queueber.limits import PRODUCER_KEEP_MS, SCHEMAS_MAX
from queueber.model import (
    ForkAt,
    NewMessages,
    Publication,
    TopicConfig,
    TopicSchema,
    TopicSettings,
)

_ANY_BYTES = "application/octet-stream"
"""The type of a topic that has none."""


@dataclass(frozen=True)
class MessageModel:
    offset: int
    payload: bytes
    key: str
    attributes: tuple[tuple[str, str], ...]
    at_ms: int
    end: int
    """The offset behind the last message that came with it."""


@dataclass
class PartitionModel:
    messages: list[MessageModel] = field(default_factory=list)
    first: int = 0
    next: int = 0
    own_first: int = 0
    """Where the topic's own messages begin; those before are shared."""

    def trim(self, now_ms: int, settings: TopicSettings) -> None:
        """Delete what is beyond the limits, always whole publishes."""
        own = [message for message in self.messages if message.offset >= self.own_first]
        age_ms, count = settings.retention_ms, settings.retention_messages
        gone = 0
        for message in own:
            is_old = age_ms and message.at_ms + age_ms <= now_ms
            is_beyond = count and self.next - message.end >= count
            if is_old or is_beyond:
                gone = message.end
        if gone:
            self.drop_before(gone)

    def drop_before(self, offset: int) -> None:
        self.messages = [each for each in self.messages if each.offset >= offset]
        self.first = max(self.first, offset)


class Refused(Exception):
    """The call changes nothing; the code of its error."""


@dataclass(eq=False)
class TopicModel:
    name: str
    settings: TopicSettings
    created_at_ms: int
    partitions: list[PartitionModel]
    is_closed: bool = False
    is_deleted: bool = False
    parent: "TopicModel | None" = None
    forks: int = 0
    used_at_ms: int = 0
    producers: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Epoch, last sequence, last seen."""
    dedup_ids: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Partition, offset, forgotten at."""
    content_type: str = ""
    text_sequence: bytes = b""
    fork_offset: int = 0
    cut_bytes: int = 0
    schemas: list[TopicSchema] = field(default_factory=list)
    """Those that were set; a fork begins without."""

    @property
    def origin(self) -> "TopicModel":
        """The oldest of its ancestors, be it deleted or not."""
        return self if self.parent is None else self.parent.origin

    def is_expired(self, now_ms: int) -> bool:
        s = self.settings
        if s.expires_at_ms:
            return s.expires_at_ms <= now_ms
        return bool(s.ttl_ms) and self.used_at_ms + s.ttl_ms <= now_ms

    def trim(self, now_ms: int) -> None:
        if not self.forks and not self.is_deleted and not self.settings.keeps_last_per_key:
            for partition in self.partitions:
                partition.trim(now_ms, self.settings)

    def last_of_keys(self, partition: int) -> dict[str, MessageModel]:
        return {each.key: each for each in self.partitions[partition].messages if each.key}


class TopicsModel:
    def __init__(self) -> None:
        self.by_name: dict[str, TopicModel] = {}
        self.sequence = 0

    def get(self, name: str, now_ms: int) -> TopicModel:
        topic = self.by_name.get(name)
        if topic is None or topic.is_expired(now_ms) or topic.is_deleted:
            raise Refused("NOT_FOUND")
        return topic

    def create(
        self,
        name: str,
        config: TopicConfig,
        now_ms: int,
        first: Publication | None = None,
        schema: bytes = b"",
    ) -> bool:
        existing = self._in_the_way(name, now_ms)
        if existing is not None:
            known = (existing.settings, len(existing.partitions), existing.content_type)
            if (config.settings, config.partitions, config.content_type) != known:
                raise Refused("ALREADY_EXISTS")
            return False
        made = [PartitionModel() for _ in range(config.partitions)]
        topic = TopicModel(name, config.settings, now_ms, made, used_at_ms=now_ms)
        topic.content_type = config.content_type
        if schema:
            topic.schemas.append(TopicSchema(1, 0, now_ms, schema))
        self._begin(topic, first, now_ms)
        return True

    def _begin(self, topic: TopicModel, first: Publication | None, now_ms: int) -> None:
        """A topic and its first messages, or nothing of both."""
        if first is not None:
            self.publish_to(topic, first, now_ms)
        expired = self.by_name.get(topic.name)
        if expired is not None:
            self.delete(expired)
        self.by_name[topic.name] = topic

    def _in_the_way(self, name: str, now_ms: int) -> TopicModel | None:
        existing = self.by_name.get(name)
        if existing is None:
            return None
        if (existing.is_expired(now_ms) or existing.is_deleted) and existing.forks:
            raise Refused("ALREADY_EXISTS")
        return None if existing.is_expired(now_ms) else existing

    def delete(self, topic: TopicModel) -> None:
        if not topic.is_deleted:
            topic.is_deleted = True
            if not topic.forks:
                self._let_go(topic)

    def _let_go(self, topic: TopicModel) -> None:
        del self.by_name[topic.name]
        if topic.parent is not None:
            topic.parent.forks -= 1
            if topic.parent.is_deleted and not topic.parent.forks:
                self._let_go(topic.parent)

    def fork(
        self,
        topic: TopicModel,
        name: str,
        config: TopicConfig,
        at: ForkAt,
        now_ms: int,
        first: Publication | None = None,
    ) -> None:
        """A fork of partition 0 at the offset, and of the others where they end."""
        offset = at.offset
        if topic.settings.keeps_last_per_key:
            raise Refused("FAILED_PRECONDITION")
        held = topic.partitions[0]
        if not held.first <= offset <= held.next:
            raise Refused("OUT_OF_RANGE")
        cut = [each for each in held.messages if each.offset == offset] if at.cut_bytes else []
        if at.cut_bytes and not (cut and at.cut_bytes < len(cut[0].payload)):
            raise Refused("OUT_OF_RANGE")
        if self._in_the_way(name, now_ms) is not None:
            raise Refused("ALREADY_EXISTS")
        ends = [offset, *(each.next for each in topic.partitions[1:])]
        made = [
            PartitionModel(
                [message for message in each.messages if message.offset < end],
                min(each.first, end),
                end,
                end,
            )
            for each, end in zip(topic.partitions, ends, strict=True)
        ]
        fork = TopicModel(name, config.settings, now_ms, made, parent=topic, used_at_ms=now_ms)
        fork.content_type = config.content_type or topic.content_type
        fork.fork_offset = offset if len(ends) == 1 else 0
        fork.cut_bytes = at.cut_bytes
        for message in cut:
            whole = message.payload[: at.cut_bytes]
            fork.partitions[0].messages.append(
                replace(message, payload=whole, at_ms=now_ms, end=offset + 1)
            )
            fork.partitions[0].next += 1
        self._begin(fork, first, now_ms)
        self.sequence += len(cut)
        topic.forks += 1

    # --- publish ----------------------------------------------------------------------------------

    def publish(self, publication: Publication, now_ms: int) -> list[tuple[int, int]] | None:
        """Where the messages are; None if the partition of those without a key is not known."""
        return self.publish_to(self.get(publication.topic, now_ms), publication, now_ms)

    def publish_to(
        self, topic: TopicModel, publication: Publication, now_ms: int
    ) -> list[tuple[int, int]] | None:
        messages = publication.messages
        if publication.producer is not None:
            producer = publication.producer
            epoch, last, _ = topic.producers.get(producer.id, (-1, 0, 0))
            last = last if producer.epoch == epoch else 0
            if producer.epoch < epoch or producer.sequence > last + 1:
                raise Refused("ABORTED")
            if producer.sequence <= last:
                return []
        self._check(topic, publication)
        partition = publication.partition
        if partition is None and len(topic.partitions) == 1:
            partition = 0
        if publication.expected_offset is not None:
            if partition is None:
                raise Refused("INVALID_ARGUMENT")
            if topic.partitions[partition].next != publication.expected_offset:
                raise Refused("FAILED_PRECONDITION")
        places = self._append(topic, messages, partition, now_ms)
        if publication.producer is not None:
            producer = publication.producer
            seen = (producer.epoch, producer.sequence, now_ms)
            topic.producers[producer.id] = seen
        was_closed, topic.is_closed = topic.is_closed, topic.is_closed or publication.closes
        topic.used_at_ms = now_ms
        if publication.text_sequence and not was_closed:
            topic.text_sequence = publication.text_sequence.encode()
        return places

    def _check(self, topic: TopicModel, publication: Publication) -> None:
        """What a publication demands of its topic."""
        has_messages = bool(publication.messages.payloads)
        may_repeat = publication.closes and publication.producer is None and not has_messages
        given, known = publication.content_type, topic.content_type or _ANY_BYTES
        text = publication.text_sequence.encode()
        version = topic.settings.schema_version
        if publication.one_partition and len(topic.partitions) != 1:
            raise Refused("FAILED_PRECONDITION")
        if topic.is_closed and may_repeat:
            return
        if (
            topic.is_closed
            or (
                given and given.split(";")[0].lower() != (known.split(";")[0].lower() or _ANY_BYTES)
            )
            or (text and text <= topic.text_sequence)
            or (has_messages and publication.schema_version != version)
        ):
            raise Refused("FAILED_PRECONDITION")

    def _append(
        self, topic: TopicModel, messages: NewMessages, partition: int | None, now_ms: int
    ) -> list[tuple[int, int]]:
        settings = topic.settings
        keys = messages.keys or [""] * len(messages.payloads)
        chosen = [
            crc32(key.encode()) % len(topic.partitions) if partition is None else partition
            for key in keys
        ]
        if settings.refuses_when_full and settings.retention_messages:
            for each in set(chosen):
                held = topic.partitions[each]
                kept = held.next - max(held.first, held.own_first)
                if kept + chosen.count(each) > settings.retention_messages:
                    raise Refused("RESOURCE_EXHAUSTED")
        ends = {each: topic.partitions[each].next + chosen.count(each) for each in set(chosen)}
        places = []
        attributes = messages.attributes or [{}] * len(chosen)
        for payload, key, own, each in zip(
            messages.payloads, keys, attributes, chosen, strict=True
        ):
            log = topic.partitions[each]
            log.messages.append(
                MessageModel(log.next, payload, key, tuple(sorted(own.items())), now_ms, ends[each])
            )
            places.append((each, log.next))
            log.next += 1
        self.sequence += len(places)
        return places

    # --- schemas ----------------------------------------------------------------------------------

    def set_schema(
        self,
        name: str,
        document: bytes,
        expected_version: int | None,
        expected_offset: int | None,
        now_ms: int,
    ) -> tuple[int, int]:
        """The version, and the offset from which on it holds."""
        topic = self.get(name, now_ms)
        if len(topic.partitions) != 1:
            raise Refused("INVALID_ARGUMENT")
        version, end = topic.settings.schema_version, topic.partitions[0].next
        is_expected = expected_version in (None, version) and expected_offset in (None, end)
        if topic.is_closed or not is_expected:
            raise Refused("FAILED_PRECONDITION")
        if version == SCHEMAS_MAX:
            raise Refused("RESOURCE_EXHAUSTED")
        topic.settings = replace(topic.settings, schema_version=version + 1)
        topic.schemas.append(TopicSchema(version + 1, end, now_ms, document))
        return version + 1, end

    def configure(self, name: str, version: int, partitions: int, now_ms: int) -> None:
        """Another version to check against, and more partitions; the rest stays."""
        topic = self.get(name, now_ms)
        more = partitions - len(topic.partitions)
        if more < 0:
            raise Refused("INVALID_ARGUMENT")
        if version < topic.settings.schema_version:
            raise Refused("FAILED_PRECONDITION")
        if more and topic.schemas:
            raise Refused("INVALID_ARGUMENT")
        topic.settings = replace(topic.settings, schema_version=version)
        topic.partitions += [PartitionModel() for _ in range(more)]
        topic.used_at_ms = now_ms

    # --- time -------------------------------------------------------------------------------------

    def sweep(self, now_ms: int) -> None:
        for topic in list(self.by_name.values()):
            if topic.is_expired(now_ms):
                self.delete(topic)
        for topic in self.by_name.values():
            topic.trim(now_ms)
            for name, (_, _, seen_ms) in list(topic.producers.items()):
                if seen_ms + PRODUCER_KEEP_MS <= now_ms:
                    del topic.producers[name]
