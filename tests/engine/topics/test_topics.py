"""Topics against the reference model: random calls, restarts and time, compared after each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import NEVER_MS
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.engine.topics.forks import fork
from queueber.engine.topics.publish import publish, publish_first
from queueber.engine.topics.read import find_id, find_sequence, read, start_of
from queueber.engine.topics.schemas import find_schema, list_schemas, put_first, set_schema
from queueber.engine.topics.sweep import next_due_ms, sweep
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.trim import trim_topic
from queueber.errors import QueueberError
from queueber.ids import IdSource, shifted
from queueber.limits import HOUR_MS
from queueber.model import (
    Bounds,
    ForkAt,
    NewMessages,
    PackedMessages,
    Position,
    Producer,
    Publication,
    Published,
    Start,
    TopicConfig,
    TopicSettings,
)
from tests.support.folders import quick_folder, remove_folder
from tests.support.topic_model import MessageModel, Refused, TopicModel, TopicsModel

NAMES = ["a", "b/c", "d.e", "f", "g"]
SETTINGS = [
    TopicSettings(),
    TopicSettings(retention_ms=5_000),
    TopicSettings(retention_messages=4),
    TopicSettings(retention_messages=6, refuses_when_full=True),
    TopicSettings(ttl_ms=60_000),
    TopicSettings(expires_at_ms=1_700_000_100_000),
    TopicSettings(schema_version=1),
]
TYPES = ["", "", "text/plain", "Text/Plain;charset=utf-8"]


@dataclass(frozen=True)
class Seen:
    """A message as a reader sees it."""

    offset: int
    payload: bytes
    key: str
    attributes: tuple[tuple[str, str], ...]
    at_ms: int

    @classmethod
    def of(cls, message: MessageModel) -> "Seen":
        return cls(message.offset, message.payload, message.key, message.attributes, message.at_ms)


class ModelRig:
    """An engine on a real store, and the model of its topics."""

    def __init__(self, seed: int) -> None:
        self.folder: Path = quick_folder()
        self.random = Random(seed)
        self.now_ms = 1_700_000_000_000
        self.model = TopicsModel()
        self.store = RocksStore(self.folder / "data")
        self.engine: Engine = open_engine(self.store, IdSource(self.random))
        self.sent: dict[tuple[str, str, int, int], Publication] = {}
        self.varied: set[tuple[str, str, int, int]] = set()
        """Calls that were sent with other payloads, too: only their number says which they are."""
        self.origins: dict[TopicModel, int] = {}

    def close(self) -> None:
        self.store.close()
        remove_folder(self.folder)

    def reopen(self) -> None:
        self.store.close()
        self.store = RocksStore(self.folder / "data")
        self.engine = open_engine(self.store, IdSource(self.random))
        for name, model in self.model.by_name.items():
            found = self.engine.topics.find(name)
            if found is not None and model.settings.ttl_ms:
                assert 0 <= found.used_at_ms - model.used_at_ms <= found.ttl_slack_ms
                model.used_at_ms = found.used_at_ms

    def tx(self) -> Transaction[None]:
        return Transaction(self.engine.kernel, self.now_ms, None)

    def topic(self, name: str) -> TopicState:
        return self.engine.topics.get(name, self.now_ms)

    def sweep(self) -> None:
        engine = self.engine
        for _ in range(1000):
            if sweep(engine.kernel, engine.queues, engine.topics, self.now_ms) is None:
                break
        else:
            pytest.fail("the sweeper does not come to an end")
        assert next_due_ms(engine.kernel, engine.topics, self.now_ms) > self.now_ms

    # --- one step of both -------------------------------------------------------------------------

    def create(self) -> None:
        name = self.random.choice(NAMES)
        settings = self.random.choice(SETTINGS)
        config = TopicConfig(settings, self.random.choice([1, 1, 3]), self.random.choice(TYPES))
        first, schema, tx = self.first(name), b"", self.tx()
        if settings.schema_version and config.partitions == 1 and self.random.random() < 0.5:
            schema = self.random.randbytes(3)

        def real() -> bool:
            topic, is_new = self.engine.topics.create(
                tx, name, settings, partitions=config.partitions, content_type=config.content_type
            )
            if is_new and schema:
                put_first(tx, topic, schema)
            if is_new:
                publish_first(tx, self.engine.topics, topic, first)
            tx.commit()
            return is_new

        self.both(real, lambda: self.model.create(name, config, self.now_ms, first, schema))

    def first(self, name: str) -> Publication | None:
        """What a new topic begins with; sometimes what it cannot begin with."""
        if self.random.random() < 0.6:
            return None
        payloads = [self.random.randbytes(4) for _ in range(self.random.choice([0, 1, 3, 7]))]
        first = Publication(name, NewMessages(payloads), 0, closes=self.random.random() < 0.1)
        self.demand(first)
        return first

    def demand(self, publication: Publication) -> None:
        """Conditions, most of which hold."""
        random = self.random
        if random.random() < 0.1:
            publication.content_type = random.choice(["text/PLAIN; x=y", "text/html"])
        if random.random() < 0.1:
            publication.text_sequence = random.choice(["1", "10", "9", "é", "z"])
        publication.one_partition = random.random() < 0.1
        if random.random() < 0.05:
            publication.schema_version = random.choice([1, 2, 3])
        elif (topic := self.model.by_name.get(publication.topic)) is not None:
            publication.schema_version = topic.settings.schema_version

    def publication(self) -> Publication:
        random = self.random
        name = random.choice(NAMES)
        count = random.choice([0, 1, 1, 2, 5])
        topic = self.model.by_name.get(name)
        partitions = len(topic.partitions) if topic else 1
        has_keys = random.random() < 0.5
        publication = Publication(
            name,
            NewMessages(
                [random.randbytes(random.choice([0, 3, 30])) for _ in range(count)],
                [random.choice("xyz") for _ in range(count)] if has_keys else (),
                [{"n": str(n)} for n in range(count)] if random.random() < 0.3 else (),
            ),
            None if has_keys else random.randrange(partitions),
            closes=random.random() < 0.03,
        )
        if random.random() < 0.2:
            end = topic.partitions[0].next if topic else 0
            publication.expected_offset = end + random.choice([0, 0, 1])
        self.demand(publication)
        if random.random() < 0.3 and (count or publication.closes):
            epoch, sequence = random.choice([0, 1, 1, 2]), random.choice([1, 1, 2, 3])
            key = (name, "p", epoch, sequence)
            # A producer that sends a call again sends the same.
            if random.random() < 0.3:
                self.sent[key] = publication
                self.varied.add(key)
            publication = self.sent.setdefault(key, publication)
            publication.number_decides = key in self.varied
            publication.producer = Producer("p", epoch, sequence)
        return publication

    def publish(self) -> None:
        publication = self.publication()
        places: list[Published] = []

        def real() -> list[tuple[int, int]]:
            tx = self.tx()
            topic = self.topic(publication.topic)
            topic.use_in(tx)
            (answer,) = publish(tx, self.engine.topics, [(topic, publication)])
            tx.commit()
            places.append(answer)
            if answer.is_repeat:
                return []
            return list(zip(answer.partitions, answer.offsets, strict=True))

        self.both(real, lambda: self.model.publish(publication, self.now_ms))
        for answer in places:
            self.check_answer(publication.topic, answer)

    def check_answer(self, name: str, answer: Published) -> None:
        topic = self.topic(name)
        end = topic.next_offset(0) if topic.partitions == 1 else 0
        assert (answer.end_offset, answer.is_closed) == (end, topic.record.is_closed)
        if answer.is_repeat:
            return
        for partition, offset, message_id, sequence in zip(
            answer.partitions, answer.offsets, answer.ids, answer.sequences, strict=True
        ):
            assert find_id(self.store, topic, message_id) == (partition, offset)
            assert find_sequence(self.store, topic, partition, sequence) == offset
            other = next((each for each in self.engine.topics if each is not topic), None)
            if other is not None and not other.record.is_deleted and not other.record.parent:
                assert find_id(self.store, other, message_id) is None

    def trim(self) -> None:
        name = self.random.choice(NAMES)
        topic = self.model.by_name.get(name)
        end = topic.partitions[0].next if topic else 0
        offset = self.random.randrange(end + 2)

        def real() -> int:
            tx = self.tx()
            deleted = trim_topic(tx, self.topic(name), 0, Position(Start.OFFSET, offset))
            tx.commit()
            return deleted

        def model() -> int:
            known = self.model.get(name, self.now_ms)
            if known.forks:
                raise Refused("FAILED_PRECONDITION")
            partition = known.partitions[0]
            if not partition.first <= offset <= partition.next:
                raise Refused("OUT_OF_RANGE")
            before = partition.first
            partition.drop_before(offset)
            return partition.first - before

        self.both(real, model)

    def delete(self) -> None:
        name = self.random.choice(NAMES)

        def real() -> None:
            tx = self.tx()
            self.engine.topics.delete(tx, self.topic(name))
            tx.commit()

        self.both(real, lambda: self.model.delete(self.model.get(name, self.now_ms)))

    def fork(self) -> None:
        name, new = self.random.choice(NAMES), self.random.choice(NAMES)
        known = self.model.by_name.get(name)
        end = known.partitions[0].next if known else 0
        cut_bytes = self.random.choice([0, 0, 1, 2, 4])
        at = ForkAt(0, self.random.randrange(end + 2), cut_bytes)
        config = TopicConfig(self.random.choice(SETTINGS[:3]))
        first = self.first(new)

        def real() -> None:
            tx = self.tx()
            made, is_new = fork(tx, self.engine.topics, self.topic(name), new, config, at)
            assert is_new
            publish_first(tx, self.engine.topics, made, first)
            tx.commit()
            assert made.record.parent == self.topic(name).queue_id

        def model() -> None:
            topic = self.model.get(name, self.now_ms)
            self.model.fork(topic, new, config, at, self.now_ms, first)

        existing = self.model.by_name.get(new)
        if existing is None or not existing.parent:  # the same fork would be made once
            self.both(real, model)

    def set_schema(self) -> None:
        random = self.random
        name, document = random.choice(NAMES), random.randbytes(random.choice([1, 20]))
        topic = self.model.by_name.get(name)
        version = topic.settings.schema_version if topic else 0
        end = topic.partitions[0].next if topic else 0
        expected_version = random.choice([None, version, version, version + 1])
        expected_offset = random.choice([None, None, end, end + 1])

        def real() -> tuple[int, int]:
            tx = self.tx()
            made = set_schema(
                tx,
                self.topic(name),
                document,
                expected_version=expected_version,
                expected_offset=expected_offset,
            )
            tx.commit()
            return made.version, made.from_offset

        def model() -> tuple[int, int]:
            expected = (expected_version, expected_offset)
            return self.model.set_schema(name, document, *expected, self.now_ms)

        self.both(real, model)

    def configure(self) -> None:
        """Settings that differ in the version of the schema, and perhaps more partitions."""
        name = self.random.choice(NAMES)
        known = self.model.by_name.get(name)
        settings = known.settings if known else TopicSettings()
        version = max(0, settings.schema_version + self.random.choice([-1, 0, 0, 1]))
        partitions = self.random.choice([len(known.partitions), 2]) if known else 1

        def real() -> None:
            tx = self.tx()
            changed = replace(settings, schema_version=version)
            topics = self.engine.topics
            topics.configure(tx, self.topic(name), changed, partitions=partitions)
            tx.commit()

        self.both(real, lambda: self.model.configure(name, version, partitions, self.now_ms))

    def both(self, real: "object", model: "object") -> None:
        """Run both; they give the same answer, or refuse with the same code."""
        answers: list[object] = []
        for run in (real, model):
            try:
                answers.append(run())  # type: ignore[operator]
            except QueueberError as error:
                answers.append(error.code)
            except Refused as refused:
                answers.append(str(refused))
        assert answers[0] == answers[1]

    # --- what is the same after each --------------------------------------------------------------

    def check(self) -> None:
        assert check_store(self.store) == []
        assert self.engine.topics.sequences.last == self.model.sequence
        alive = [
            topic for topic in self.model.by_name.values() if not topic.is_expired(self.now_ms)
        ]
        for topic in alive:
            found = self.engine.topics.find(topic.name)
            assert found is not None
            self.check_topic(found, topic)
        listed = self.engine.topics.names("", "", 100, 0)
        expired = {t.name for t in self.model.by_name.values() if t.is_expired(self.now_ms)}
        assert set(listed) - expired == {t.name for t in alive if not t.is_deleted}

    def check_topic(self, found: TopicState, topic: TopicModel) -> None:
        record = found.record
        assert (record.is_closed, record.is_deleted) == (topic.is_closed, topic.is_deleted)
        assert (record.forks, found.partitions) == (topic.forks, len(topic.partitions))
        assert record.text_sequence.encode() == topic.text_sequence
        assert (record.fork_offset, record.cut_bytes) == (topic.fork_offset, topic.cut_bytes)
        self.check_origin(found, topic)
        self.check_schemas(found, topic)
        for partition, held in enumerate(topic.partitions):
            start, _ = start_of(self.store, found, partition, Position())
            assert (start, found.next_offset(partition)) == (held.first, held.next)
            expected = [Seen.of(each) for each in held.messages]
            assert self.read_all(found, partition, start, self.random.choice([1, 3, 100])) == (
                expected
            )
            for at_ms in {each.at_ms for each in held.messages}:
                at, _ = start_of(self.store, found, partition, Position(Start.TIME, at_ms))
                assert at == next(each.offset for each in held.messages if each.at_ms >= at_ms)

    def check_schemas(self, found: TopicState, topic: TopicModel) -> None:
        assert found.settings.schema_version == topic.settings.schema_version
        listed = list_schemas(self.store, found)
        assert listed == [replace(each, document=b"") for each in topic.schemas]
        for each in topic.schemas:
            known = replace(each, topic_number=found.queue_id)
            assert find_schema(self.store, found, each.version) == known

    def check_origin(self, found: TopicState, topic: TopicModel) -> None:
        """Two topics have the same origin if they have the same oldest ancestor, and only then."""
        origin = self.engine.topics.origin(found)
        assert self.origins.setdefault(topic.origin, origin) == origin
        assert len(set(self.origins.values())) == len(self.origins)

    def read_all(self, topic: TopicState, partition: int, offset: int, count: int) -> list[Seen]:
        seen: list[Seen] = []
        while True:
            page = read(self.store, topic, partition, offset, Bounds(count, 200))
            assert page.count <= count
            for packed in page.packed:
                seen += unpacked(packed)
            if page.next_offset == page.end_offset:
                return seen
            assert page.next_offset > offset
            offset = page.next_offset

    def step(self) -> None:
        chosen = self.random.choices(
            [self.create, self.publish, self.trim, self.delete, self.fork, self.pass_time,
             self.reopen, self.set_schema, self.configure],
            [4, 20, 2, 1, 2, 4, 1, 2, 1],
        )[0]  # fmt: skip
        chosen()
        self.check()

    def pass_time(self) -> None:
        self.now_ms += self.random.choice([1, 1_000, 4_000, 30_000, HOUR_MS])
        self.sweep()
        self.model.sweep(self.now_ms)


def unpacked(packed: PackedMessages) -> Iterator[Seen]:
    start = 0
    for at in range(packed.count):
        end = int.from_bytes(packed.ends[4 * at : 4 * at + 4], "little")
        attributes = unpack_attributes(packed.attributes[at]) if packed.attributes else {}
        yield Seen(
            packed.offset + at,
            packed.payloads[start:end],
            packed.keys[at].decode() if packed.keys else "",
            tuple(sorted(attributes.items())),
            packed.at_ms,
        )
        start = end
    assert shifted(packed.id, 0) == packed.id


@pytest.mark.parametrize("seed", range(40))
def test_topics_do_what_the_model_says(seed: int) -> None:
    rig = ModelRig(seed)
    try:
        for _ in range(120):
            rig.step()
        # Nothing is left of topics that are gone.
        rig.now_ms += 400 * 24 * HOUR_MS
        for topic in list(rig.model.by_name):
            found = rig.engine.topics.find(topic)
            if found is not None and not found.record.is_deleted:
                tx = rig.tx()
                rig.engine.topics.delete(tx, found)
                tx.commit()
        rig.sweep()
        rig.now_ms += HOUR_MS
        rig.sweep()
        assert {
            family: rig_keys(rig, family) for family in Family if family is not Family.DEFAULT
        } == {family: [] for family in Family if family is not Family.DEFAULT}
        assert rig.engine.topics.count == 0
        assert next_due_ms(rig.engine.kernel, rig.engine.topics, rig.now_ms) == NEVER_MS
    finally:
        rig.close()


def rig_keys(rig: ModelRig, family: Family) -> list[bytes]:
    return [key for key, _ in rig.store.walk(family, b"", b"\xff" * 40)]
