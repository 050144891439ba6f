"""Rebuild of topics: whatever is missing or broken, every rule holds afterwards."""

import os
from random import Random

import pytest

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import broken_queues, rebuild_store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.engine.topics import groups
from queueber.engine.topics.publish import publish
from queueber.engine.topics.read import read
from queueber.engine.topics.sweep import sweep
from queueber.ids import IdSource
from queueber.limits import HOUR_MS, MIB
from queueber.model import Bounds, NewMessages, Publication
from tests.engine.topic_damage import TopicDamage
from tests.support.dumps import dump
from tests.support.random_damage import damage_some

SEEDS = int(os.environ.get("QUEUEBER_TEST_REBUILD_SEEDS", "60"))
FAMILIES = [family for family in Family if family is not Family.DEFAULT]


def entries(damage: TopicDamage) -> list[tuple[Family, bytes, bytes]]:
    return [
        (family, key, value)
        for family in FAMILIES
        for key, value in damage.store.walk(family, b"", b"\xff" * 300)
    ]


def go_on(damage: TopicDamage) -> Engine:
    """Publish to every topic, and do what is due for an hour."""
    engine = open_engine(damage.store, IdSource(Random(5)))
    now_ms = damage.now_ms
    for name in engine.topics.names("", "", 100, 0):
        topic = engine.topics.find(name)
        assert topic is not None
        if topic.expires_at_ms > now_ms and not topic.record.is_closed:
            tx = Transaction(engine.kernel, now_ms, None)
            publish(tx, engine.topics, [(topic, Publication(name, NewMessages([b"new"])))])
            tx.commit()
            for partition in range(topic.partitions):
                first = topic.first_offset(partition)
                read(damage.store, topic, partition, first, Bounds(100, MIB))
    for later_ms in (0, HOUR_MS // 2, 2 * HOUR_MS):
        for _ in range(1000):
            if sweep(engine.kernel, engine.queues, engine.topics, now_ms + later_ms) is None:
                break
        else:
            pytest.fail("the sweep does not end")
    return engine


def test_sound_topics_stay_as_they_are() -> None:
    damage = TopicDamage()
    before = dump(damage.store)

    assert list(rebuild_store(damage.store)) == []

    assert dump(damage.store) == before


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_rule_holds_after_any_damage(seed: int) -> None:
    damage = TopicDamage()
    damage_some(damage.store, FAMILIES, Random(seed), lambda each: each is not Family.TOPIC_NAMES)
    was_broken = bool(broken_queues(damage.store))

    losses = list(rebuild_store(damage.store))

    assert [str(each) for each in check_store(damage.store)] == []
    assert was_broken or losses == []
    go_on(damage)
    assert [str(each) for each in check_store(damage.store)] == []


# --- what is kept, and what is told ---------------------------------------------------------------


def payloads(engine: Engine, damage: TopicDamage, name: str) -> list[tuple[int, bytes]]:
    """Offset and payload of what is left in the first partition."""
    topic = engine.topics.get(name, damage.now_ms)
    first = topic.first_offset(0)
    found = read(damage.store, topic, 0, first, Bounds(100, MIB)).packed
    return [(each.offset, each.payloads) for each in found]


def rebuilt(damage: TopicDamage) -> tuple[Engine, list[str]]:
    damage.write()
    losses = list(rebuild_store(damage.store))
    assert check_store(damage.store) == []
    return open_engine(damage.store, IdSource(Random(7))), losses


def test_messages_before_a_lost_block_go_and_those_behind_it_stay() -> None:
    damage = TopicDamage()
    damage.delete_block("plain", 3)

    engine, losses = rebuilt(damage)

    # The groups stay as they are: what they have of messages that are gone vanishes in time.
    assert losses == ["topic 'plain': 2 messages before a gap"]
    assert payloads(engine, damage, "plain") == [(4, b"ef")]


def test_last_messages_of_keys_stay_when_another_block_is_lost() -> None:
    damage = TopicDamage()
    damage.delete_block("keyed", 1)
    damage.batch.delete_range(Family.LAST_OF_KEY, b"", b"\xff")

    engine, losses = rebuilt(damage)

    assert losses == []  # message 1 was replaced, so nothing of worth is lost
    assert payloads(engine, damage, "keyed") == [(2, b"c")]


def test_a_fork_keeps_its_own_messages_when_shared_ones_are_lost() -> None:
    damage = TopicDamage()
    damage.delete_block("parent", 3)

    engine, losses = rebuilt(damage)

    assert losses == ["topic 'child': 3 messages that it shared"]
    assert payloads(engine, damage, "child") == [(3, b"e")]
    assert payloads(engine, damage, "parent") == [(0, b"ab")]


def test_a_topic_without_its_record_is_kept_under_another_name() -> None:
    damage = TopicDamage()
    number = int.from_bytes(damage.prefix("parent"))
    damage.batch.delete(Family.TOPICS, damage.prefix("parent"))

    engine, losses = rebuilt(damage)

    name = f"recovered-{number}"
    assert losses == [f"topic {name!r}: the record of log {number} was lost, name and settings"]
    assert payloads(engine, damage, name) == [(0, b"ab"), (2, b"cd")]
    assert payloads(engine, damage, "child") == [(0, b"ab"), (2, b"c"), (3, b"e")]
    assert engine.topics.get(name, damage.now_ms).record.forks == 1


def test_a_group_forgets_where_it_began_in_partitions_that_are_gone() -> None:
    damage = TopicDamage()
    assert damage.topic("plain").groups["g"].record.began_at == (1, 0)
    name = f"recovered-{int.from_bytes(damage.prefix('plain'))}"
    damage.batch.delete(Family.TOPICS, damage.prefix("plain"))

    engine, losses = rebuilt(damage)

    assert f"topic {name!r}: 1 beginnings of groups in partitions that are gone" in losses
    topic = engine.topics.get(name, damage.now_ms)
    assert (topic.partitions, topic.groups["g"].record.began_at) == (1, (1,))


def test_a_broken_shared_group_begins_with_its_first_message_that_was_not_acknowledged() -> None:
    damage = TopicDamage()
    group = damage.topic("plain").groups["shared"]
    damage.batch.delete(Family.COUNTERS, group.prefix)

    engine, losses = rebuilt(damage)

    assert losses == [
        "topic 'plain': 1 dead letters of groups",
        "topic 'plain': 1 shared groups began again with their first message that was not "
        "acknowledged",
    ]
    topic = engine.topics.get("plain", damage.now_ms)
    found = topic.groups["shared"]
    assert [groups.floor(topic, found, each) for each in (0, 1)] == [3, 0]
    assert groups.cursor(topic, topic.groups["g"], 0) == 3


def test_names_and_agenda_are_written_again_from_the_records() -> None:
    damage = TopicDamage()
    damage.batch.delete_range(Family.TOPIC_NAMES, b"", b"\xff")
    damage.batch.delete_range(Family.AGENDA, b"", b"\xff")

    engine, losses = rebuilt(damage)

    assert losses == []
    assert engine.topics.names("", "", 10, 0) == ["child", "keyed", "parent", "plain", "short"]
    assert engine.topics.get("other name", damage.now_ms).name == "plain"
    go_on(damage)
    assert list(damage.store.walk(Family.TOPICS, damage.prefix("gone"), b"\xff" * 5)) == []
