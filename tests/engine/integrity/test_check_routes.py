"""Routes that do not fit their queue or topic are reported, and repaired."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from queueber.db.families import Family
from queueber.db.records.routes import RouteRecord, encode_route, route_key
from queueber.db.records.topics import encode_topic
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.model import LoadRef, On
from tests.support.operations import begin_load
from tests.support.route_rig import RouteRig


@pytest.fixture
def rig() -> Iterator[RouteRig]:
    made = RouteRig()
    made.route(On.UPDATE, On.DELETE, where="a = 1")
    yield made
    made.close()


@dataclass(frozen=True)
class Case:
    rule: str
    text: str
    damage: Callable[[RouteRig, Batch], None]
    left: tuple[On, ...] = (On.UPDATE, On.DELETE)


def _key(rig: RouteRig, on: On, topic: int = 0) -> bytes:
    return route_key(rig.queue.queue_id, on, topic or rig.topic.queue_id)


def _record(**fields: Any) -> Callable[[RouteRig, Batch], None]:
    def damage(rig: RouteRig, batch: Batch) -> None:
        changed = rig.topic.record._replace(**fields)
        batch.put(Family.TOPICS, rig.topic.prefix, encode_topic(changed))

    return damage


def _settings(rig: RouteRig, batch: Batch) -> None:
    _record(settings=replace(rig.topic.settings, refuses_when_full=True))(rig, batch)


CASES = [
    Case("I20", "counts 5 sources, but 2 routes", _record(sources=5)),
    Case("I20", "counts 0 sources, but 2 routes", _record(sources=0)),
    Case("I20", "which cannot have one", _record(is_closed=True), ()),
    Case("I20", "which cannot have one", _settings, ()),
    Case(
        "I20",
        "counts 2 sources, but 1 routes",
        lambda rig, batch: batch.delete(Family.ROUTES, _key(rig, On.UPDATE)),
        (On.DELETE,),
    ),
    Case(
        "I20",
        "topic number 77, which cannot have one",
        lambda rig, b: b.put(Family.ROUTES, _key(rig, On.INSERT, 77), encode_route(RouteRecord())),
    ),
    Case(
        "I7",
        "cannot be read",
        lambda rig, batch: batch.put(Family.ROUTES, _key(rig, On.UPDATE), b"\xff" * 8),
        (On.DELETE,),
    ),
    Case(
        "I7",
        "cannot be read",
        lambda rig, batch: batch.put(
            Family.ROUTES, _key(rig, On.UPDATE), encode_route(RouteRecord("a ="))
        ),
        (On.DELETE,),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.text for case in CASES])
def test_damage_is_told_and_repaired(rig: RouteRig, case: Case) -> None:
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    case.damage(rig, batch)
    rig.store.write(batch)

    found = check_store(rig.store)
    assert (case.rule, True) in [(each.rule, case.text in each.text) for each in found]
    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
    rig.reopen()
    assert [each.on for each in rig.engine.routes.sources_of(rig.topic)] == list(case.left)


def test_a_load_beside_a_route_of_what_is_added_is_told_and_repaired(rig: RouteRig) -> None:
    begin_load(
        rig.engine, rig.queue, LoadRef("l"), batch="", timeout_ms=9000, token=b"",
        now_ms=rig.now_ms,
    )  # fmt: skip
    batch = rig.store.batch()
    batch.put(Family.ROUTES, _key(rig, On.INSERT), encode_route(RouteRecord()))
    _record(sources=3)(rig, batch)
    rig.store.write(batch)

    assert [each.text for each in check_store(rig.store)] == [
        "has a load under way, and a route for what is added"
    ]
    list(rebuild_store(rig.store))
    assert check_store(rig.store) == []
