"""Routes: which changes become events where, what is refused, and what drops a route."""

import json
from collections.abc import Callable
from zlib import crc32

import pytest

from queueber.engine.queue.cancel import cancel
from queueber.engine.queue.remove import remove
from queueber.engine.routes.events import Event, Gathered
from queueber.engine.topics.forks import fork
from queueber.engine.topics.schemas import set_schema
from queueber.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from queueber.ids import QueueId
from queueber.limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    FILTER_CONTENTS_BYTES_MAX,
    MINUTE_MS,
    ROUTES_OF_QUEUE_MAX,
    ROUTES_OF_TOPIC_MAX,
)
from queueber.model import (
    EventPayload,
    GroupKind,
    LoadRef,
    On,
    QueueSettings,
    Source,
    TopicConfig,
    TopicSettings,
)
from tests.support.operations import abort_load, begin_load
from tests.support.route_rig import RouteRig


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


# --- filters --------------------------------------------------------------------------------------


def test_only_changes_that_the_filter_matches_have_events(rig: RouteRig) -> None:
    where = "total >= 100 AND attributes.region = 'eu' AND item.priority < 9 AND item.key LIKE 'o%'"
    rig.route(where=where)
    added = rig.add(
        _json(total=100), _json(total=99), _json(total=500), b"no json", _json(total=100),
        attributes=[{"region": "eu"}, {"region": "eu"}, {}, {"region": "eu"}, {"region": "eu"}],
        keys=["o1", "o2", "o3", "o4", "o5"], priorities=[5, 5, 5, 5, 9],
    )  # fmt: skip
    rig.run_on(rig.queue, cancel, list(added.ids))

    assert rig.changes() == [("added", added.ids[0]), ("cancelled", added.ids[0])]


def test_filters_know_the_change_the_attempt_and_the_error(rig: RouteRig) -> None:
    rig.route(On.UPDATE, where="item.change = 'expired' AND item.attempt = 1 AND item.state <> 'x'")
    rig.route(On.DELETE, where="item.change = 'dead' AND item.error LIKE '%ran out%'")
    rig.add(b"a")
    item = rig.lease().ids[0]
    for _ in range(3):  # it expires, comes back, and expires again
        rig.now_ms += 2000
        rig.sweep()
        rig.lease()

    assert rig.changes() == [("expired", item), ("dead", item)]


def test_contents_too_large_for_a_filter_do_not_match_and_their_fields_are_not_read(
    rig: RouteRig,
) -> None:
    rig.route(where="a = 1 AND item.bytes > 0")
    rig.add(_json(a=1), _json(a=1).ljust(FILTER_CONTENTS_BYTES_MAX + 1))

    assert len(rig.events()) == 1


@pytest.mark.parametrize(
    "where", ["a = ", "item.size = 1", "item.a.b = 1", "a == 1", "x" * 3000], ids=lambda w: w[:9]
)
def test_a_bad_filter_is_refused_and_nothing_changes(rig: RouteRig, where: str) -> None:
    before = rig.dump()
    with pytest.raises(InvalidArgument):
        rig.route(On.INSERT, where=where)
    with pytest.raises(InvalidArgument):
        rig.route(On.INSERT, partition_by=where)

    assert rig.dump() == before
    assert rig.queue.changes is None


def test_filters_are_parsed_once(rig: RouteRig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.route(On.INSERT, where="a = 1", partition_by="a")
    monkeypatch.setattr("queueber.engine.routes.route.parse_filter", None)
    monkeypatch.setattr("queueber.engine.routes.route.parse_fields", None)

    rig.add(_json(a=1), _json(a=1))

    assert len(rig.events()) == 2


# --- partitions and sizes -------------------------------------------------------------------------


def test_contents_are_parsed_once_for_all_routes(
    rig: RouteRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []

    def noted(contents: bytes) -> object:
        parsed.append(contents)
        return json.loads(contents)

    monkeypatch.setattr("queueber.filters.record_view.parse_json", noted)
    rig.run(rig.topics.create, "other", TopicSettings())
    other = rig.topics.get("other", rig.now_ms)
    rig.route(On.INSERT, where="a = 1")
    rig.route(On.INSERT, where="a > 1 AND a < 3", partition_by="a", topic=other)

    rig.add(b'{"a":1}', b'{"a":2}')

    assert parsed == [b'{"a":1}', b'{"a":2}']
    assert (len(rig.events()), len(rig.events(topic=other))) == (1, 1)


def test_partitions_are_chosen_by_the_key_or_by_fields() -> None:
    rig = RouteRig(partitions=4)
    rig.route(On.INSERT, partition_by="(user, attributes.region)")
    rig.route(On.DELETE, partition_by="user")
    rig.route(On.UPDATE)
    added = rig.add(
        _json(user=42), _json(user="ü"), b"\xff", _json(user="\ud800"),
        attributes=[{"region": "eu"}, {}, {}, {}], keys=["", "", "", "k"],
    )  # fmt: skip
    wanted = {
        added.ids[0]: '[42,"eu"]',
        added.ids[1]: '["\\u00fc",null]',
        added.ids[2]: added.ids[2].hex(),
        added.ids[3]: '["\\ud800",null]',
    }
    found = {e.id: at for at in range(4) for e in rig.events(at) if e.change == "added"}
    assert found == {each: crc32(text.encode()) % 4 for each, text in wanted.items()}

    rig.run_on(rig.queue, cancel, list(added.ids))
    gone = {e.id: at for at in range(4) for e in rig.events(at) if e.change == "cancelled"}
    texts = ["42", "ü", added.ids[2].hex(), "?"]
    assert [gone[each] for each in added.ids] == [crc32(t.encode()) % 4 for t in texts]
    rig.close()


def test_events_do_not_hold_the_texts_that_chose_their_partitions(
    rig: RouteRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, events = Gathered.put, list[Event]()

    def noted(gathered: Gathered, topic: QueueId, event: Event) -> None:
        events.append(event)
        put(gathered, topic, event)

    monkeypatch.setattr(Gathered, "put", noted)
    rig.route(On.INSERT, partition_by="user")
    rig.add(*[_json(user="x" * 50_000)] * 2)

    assert len(events) == 2
    assert all(len(repr(each)) < 1000 for each in events)


def test_contents_that_are_too_large_for_a_message_leave_the_key(rig: RouteRig) -> None:
    rig.engine.routes.log.payload_bytes_max = 10
    rig.route(On.INSERT, payload=EventPayload.FULL)
    rig.add(b"x" * 10, b"x" * 11, attributes=[{"a": "b"}] * 2)

    small, large = rig.events()
    assert small.payload == b"x" * 10
    assert large.payload == {"id": large.id.hex(), "key": None}
    assert large.attributes["queueber.payload"] == "key"
    assert large.attributes["a"] == "b"


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({str(n): "" for n in range(26)}, "full"),
        ({str(n): "" for n in range(27)}, "key"),
        ({"queueber.op": "x"} | {str(n): "" for n in range(26)}, "full"),
        ({"ü": "x" * 8058}, "full"),
        ({"ü": "x" * 8059}, "key"),
    ],
    ids=["most", "too many", "names of its own", "largest", "too large"],
)
def test_attributes_that_are_too_many_for_a_message_leave_the_key(
    rig: RouteRig, attributes: dict[str, str], kind: str
) -> None:
    rig.route(On.INSERT, payload=EventPayload.FULL)
    item = rig.add(b"x", attributes=[attributes]).ids[0].hex()

    (event,) = rig.events()
    own = event.attributes
    size = sum(len(name.encode()) + len(value.encode()) for name, value in own.items())
    assert own["queueber.payload"] == kind
    assert (own["queueber.op"], own["queueber.id"]) == ("insert", item)
    assert event.payload == (b"x" if kind == "full" else {"id": item, "key": None})
    assert len(own) == (len({**attributes, **own}) if kind == "full" else 6)
    assert len(own) <= ATTRIBUTES_MAX
    assert size <= ATTRIBUTES_BYTES_MAX


def test_attributes_count_as_contents_of_a_write(
    rig: RouteRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.routes.events.EVENTS_BYTES_MAX", 1000)
    rig.route(On.INSERT, payload=EventPayload.FULL)
    rig.add(b"a", b"b", b"c", attributes=[{"n": "x" * 400}] * 3)

    first, second, third = [each.attributes for each in rig.events()]
    assert ("n" in first, first["queueber.payload"]) == (True, "full")
    for other in (second, third):
        assert ("n" in other, other["queueber.payload"]) == (False, "key")


def test_a_write_holds_contents_up_to_a_limit_and_then_keys(
    rig: RouteRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.routes.events.EVENTS_BYTES_MAX", 25)
    rig.route(On.INSERT, payload=EventPayload.FULL)
    rig.add(*[b"x" * 10] * 4)
    rig.add(b"y" * 10)

    kinds = [each.attributes["queueber.payload"] for each in rig.events()]
    assert kinds == ["full", "full", "key", "key", "full"]


def test_one_change_goes_to_every_topic_that_wants_it(rig: RouteRig) -> None:
    rig.run(rig.topics.create, "second", TopicSettings(keeps_last_per_key=True))
    second = rig.topics.get("second", rig.now_ms)
    rig.route(payload=EventPayload.FULL)
    rig.route(payload=EventPayload.DIFF, topic=second)
    added = rig.add(b"a", keys=["k"])
    rig.run_on(rig.queue, cancel, list(added.ids))

    assert rig.words() == ["added", "cancelled"]
    assert [each.payload["state"] for each in rig.events(topic=second)] == [
        [None, "ready"],
        ["ready", "gone"],
    ]
    rig.now_ms += MINUTE_MS
    rig.sweep()
    assert [each.change for each in rig.events(topic=second)] == ["cancelled"]


# --- adding and dropping --------------------------------------------------------------------------


def test_a_source_is_added_once_and_a_different_one_is_refused(rig: RouteRig) -> None:
    add, source = rig.engine.routes.add, Source("q", On.INSERT, where="a = 1")

    assert rig.run(add, rig.topic, source)
    assert not rig.run(add, rig.topic, source)
    with pytest.raises(AlreadyExists, match="drop it first"):
        rig.run(add, rig.topic, Source("q", On.INSERT, where="a = 2"))
    with pytest.raises(NotFound, match="no queue 'nobody'"):
        rig.run(add, rig.topic, Source("nobody", On.INSERT))
    assert rig.engine.routes.sources_of(rig.topic) == [source]
    assert rig.topic.record.sources == 1


def test_dropped_sources_publish_no_more_and_others_go_on(rig: RouteRig) -> None:
    rig.route()
    drop = rig.engine.routes.drop
    assert rig.run(drop, rig.topic, "q", On.INSERT) == 1
    added = rig.add(b"a")
    rig.run_on(rig.queue, cancel, list(added.ids))
    assert rig.words() == ["cancelled"]

    assert rig.run(drop, rig.topic, "q", None) == 2
    assert rig.run(drop, rig.topic, "q", None) == 0
    assert rig.run(drop, rig.topic, "nobody", None) == 0
    rig.add(b"b")
    assert rig.words() == ["cancelled"]
    assert rig.queue.changes is None


def test_routes_are_there_after_a_restart_and_no_topic_is_read_for_them(rig: RouteRig) -> None:
    rig.route(where="a = 1", partition_by="a", payload=EventPayload.FULL)
    rig.add(_json(a=1))
    rig.reopen()

    assert list(rig.topics) == []
    rig.add(_json(a=1), _json(a=2))
    assert rig.words() == ["added", "added"]
    assert [each.on for each in rig.engine.routes.sources_of(rig.topic)] == list(On)


def test_a_deleted_topic_drops_its_routes(rig: RouteRig) -> None:
    rig.route()
    rig.run(rig.topics.delete, rig.topic)

    assert rig.queue.changes is None
    rig.add(b"a")
    rig.sweep()
    rig.reopen()
    assert rig.queue.changes is None


def test_a_topic_that_expires_drops_its_routes() -> None:
    rig = RouteRig(topic=TopicSettings(ttl_ms=1000))
    rig.route()
    rig.now_ms += 900
    rig.add(b"a")
    rig.now_ms += 900
    assert rig.topic.is_alive(rig.now_ms)  # an event is a use of it

    rig.now_ms += 1000
    rig.add(b"b")
    rig.sweep()
    rig.add(b"c")
    assert rig.queue.changes is None
    rig.close()


def test_a_deleted_queue_drops_its_routes_and_has_no_events(rig: RouteRig) -> None:
    rig.route()
    rig.add(b"a")
    rig.run(rig.queues.delete, "q")

    assert rig.words() == ["added"]
    assert rig.topic.record.sources == 0
    rig.run(rig.topics.close, rig.topic)
    rig.run(rig.queues.create, "q", QueueSettings())
    rig.add(b"b")
    assert rig.words() == ["added"]


def test_a_fork_has_no_sources(rig: RouteRig) -> None:
    rig.route()
    made, is_new = rig.run(fork, rig.topics, rig.topic, "f", TopicConfig())
    rig.add(b"a")

    assert is_new
    assert made.record.sources == 0
    assert rig.events(topic=made) == []
    assert not rig.run(fork, rig.topics, rig.topic, "f", TopicConfig())[1]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [TopicSettings(refuses_when_full=True), TopicSettings(schema_version=1)]
)
def test_a_topic_that_may_refuse_messages_has_no_sources(settings: TopicSettings) -> None:
    rig = RouteRig(topic=settings)
    with pytest.raises(FailedPrecondition, match="it can have no sources"):
        rig.route(On.INSERT)
    rig.close()


def test_a_closed_topic_has_no_sources(rig: RouteRig) -> None:
    rig.run(rig.topics.close, rig.topic)
    with pytest.raises(FailedPrecondition, match="is closed"):
        rig.route(On.INSERT)


def _close(rig: RouteRig) -> None:
    rig.run(rig.topics.close, rig.topic)


def _publish_and_close(rig: RouteRig) -> None:
    rig.publish(b"m", closes=True)


def _refuse_when_full(rig: RouteRig) -> None:
    rig.run(rig.topics.configure, rig.topic, TopicSettings(refuses_when_full=True))


def _demand_schema(rig: RouteRig) -> None:
    rig.run(rig.topics.configure, rig.topic, TopicSettings(schema_version=1))


def _set_schema(rig: RouteRig) -> None:
    rig.run(set_schema, rig.topic, b"{}")


@pytest.mark.parametrize(
    "change", [_close, _publish_and_close, _refuse_when_full, _demand_schema, _set_schema]
)
def test_a_topic_with_sources_stays_one_that_refuses_nothing(
    rig: RouteRig, change: Callable[[RouteRig], None]
) -> None:
    rig.route(On.DELETE)
    with pytest.raises(FailedPrecondition, match="drop its sources first"):
        change(rig)
    rig.run(rig.topics.configure, rig.topic, TopicSettings(retention_messages=5), partitions=3)

    rig.run(rig.engine.routes.drop, rig.topic, "q", None)
    if change is not _set_schema:  # only for one partition
        change(rig)


def test_loads_and_routes_of_what_is_added_exclude_each_other(rig: RouteRig) -> None:
    def begin(name: str) -> None:
        begin_load(
            rig.engine, rig.queue, LoadRef(name), batch="", timeout_ms=9000, token=b"",
            now_ms=rig.now_ms,
        )  # fmt: skip

    begin("l")
    with pytest.raises(FailedPrecondition, match="is under way"):
        rig.route(On.INSERT)
    rig.route(On.UPDATE)
    abort_load(rig.engine, rig.queue, LoadRef("l"), rig.now_ms)
    rig.route(On.INSERT)
    with pytest.raises(FailedPrecondition, match="drop that source of the topic first"):
        begin("m")


def test_there_are_limits_of_routes(rig: RouteRig, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(ROUTES_OF_QUEUE_MAX):
        rig.run(rig.topics.create, f"t{number}", TopicSettings())
        rig.route(On.INSERT, topic=rig.topics.get(f"t{number}", rig.now_ms))
    with pytest.raises(ResourceExhausted, match=f"{ROUTES_OF_QUEUE_MAX} routes, the limit"):
        rig.route(On.INSERT)
    rig.run(rig.engine.routes.drop, rig.topics.get("t0", rig.now_ms), "q", None)
    monkeypatch.setattr("queueber.engine.routes.routes.ROUTES_OF_TOPIC_MAX", 1)
    with pytest.raises(ResourceExhausted, match="the limit is 1"):
        rig.route(On.UPDATE, topic=rig.topics.get("t1", rig.now_ms))
    assert ROUTES_OF_TOPIC_MAX > ROUTES_OF_QUEUE_MAX


def test_circles_of_bridges_and_inserts_are_refused(rig: RouteRig) -> None:
    """t fills q by a bridge, q publishes to u, u fills r, r may not publish to t."""
    rig.create_group("b", GroupKind.QUEUE, queue="q")
    with pytest.raises(FailedPrecondition, match="without end"):
        rig.route(On.INSERT)
    rig.route(On.DELETE)  # somebody must delete items for that
    rig.run(rig.topics.create, "u", TopicSettings())
    rig.run(rig.queues.create, "r", QueueSettings())
    other = rig.topics.get("u", rig.now_ms)
    rig.route(On.INSERT, topic=other)
    add: Callable[..., bool] = rig.engine.routes.add
    assert rig.run(add, rig.topic, Source("r", On.INSERT))
    rig.name = "u"
    with pytest.raises(FailedPrecondition, match="without end"):
        rig.create_group("b", GroupKind.QUEUE, queue="r")
    rig.name = "t"
    rig.run(rig.engine.routes.drop, rig.topic, "r", None)
    rig.name = "u"
    rig.create_group("b", GroupKind.QUEUE, queue="r")
    rig.name = "t"
    with pytest.raises(FailedPrecondition, match="without end"):
        rig.run(add, rig.topic, Source("r", On.INSERT))


def test_circles_of_other_changes_turn_once_for_each_act_of_a_caller(rig: RouteRig) -> None:
    """Each event of a change or an end becomes an item, and stays one until somebody works on it:
    so there are never more items than those that were added, and one for each event."""
    rig.route(On.UPDATE, On.DELETE)
    rig.create_group("b", GroupKind.QUEUE, queue="q")
    rig.add(b"1", b"2")

    def items_after_all_that_happens_by_itself() -> int:
        for _ in range(3):
            rig.now_ms += 10_000
            rig.sweep()
        return rig.queue.counters.ready

    assert items_after_all_that_happens_by_itself() == 2
    polled = rig.lease(2, lease_ms=100)
    assert items_after_all_that_happens_by_itself() == 2 + 2  # both came back, with an event each
    assert rig.words() == ["expired", "expired"]

    polled = rig.lease(1)
    rig.run_on(rig.queue, remove, polled.ids, [polled.lease_id])
    assert items_after_all_that_happens_by_itself() == 4 - 1 + 1
    assert rig.run_on(rig.queue, cancel, rig.lease(1).ids) == [True]
    assert items_after_all_that_happens_by_itself() == 4
    assert rig.words() == ["expired", "expired", "removed", "cancelled"]


def test_a_filter_leaves_out_what_came_through_the_bridge(rig: RouteRig) -> None:
    rig.route(On.DELETE, where='attributes."queueber.queue" IS NULL')
    rig.create_group("b", GroupKind.QUEUE, queue="q")
    rig.add(b"1", attributes=[{"kind": "bill"}])
    for _ in range(3):
        if polled := rig.lease(1).ids:
            rig.run_on(rig.queue, cancel, polled)
        rig.now_ms += 10_000
        rig.sweep()

    assert rig.words() == ["cancelled"]
    assert (rig.queue.counters.added_total, rig.queue.counters.ready) == (2, 0)


def test_messages_of_others_and_events_share_a_topic(rig: RouteRig) -> None:
    rig.route(On.INSERT, payload=EventPayload.FULL)
    rig.publish(b"m")
    rig.add(b"e")
    rig.publish(b"n")

    assert [payload for _, payload in rig.read()] == [b"m", b"e", b"n"]
    assert rig.topic.next_offset(0) == 3
