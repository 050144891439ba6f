"""Operating a queue: peek, cancel, purge, redrive, pause, settings."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import queueber
from queueber import Backoff, ItemState, LeasePage
from queueber.testing import ServerProcess

ID = bytes(16)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001  that is the mistake


def counts(queue: queueber.Queue) -> tuple[int, int, int, int]:
    stats = queue.stats()
    return stats.ready, stats.delayed, stats.leased, stats.dead


def kill_all(queue: queueber.Queue) -> list[bytes]:
    """Make every ready item a dead letter. The queue allows one attempt."""
    ids: list[bytes] = []
    while lease := queue.poll(1000):
        lease.fail("dead on purpose")
        ids += lease.ids
    return ids


def test_items_of_every_state_are_seen_as_they_stand(client: queueber.Client) -> None:
    client.create_queue("every-state", attempts_max=1)
    queue = client.queue("every-state")
    [dead] = queue.add(b"dead", batch="b")
    kill_all(queue)
    [leased] = queue.add(b"leased", attributes={"a": "1"})
    lease = queue.poll()
    [delayed] = queue.add(b"delayed", delay=60, priority=7)
    [ready] = queue.add(b"ready", key="k")

    [item] = queue.peek().items
    assert (item.id, item.contents, item.key, item.priority) == (ready, b"ready", "k", 5)
    [item] = queue.peek("delayed").items
    assert (item.id, item.priority) == (delayed, 7)
    assert item.at_ms > item.added_at_ms
    [item] = queue.peek(ItemState.LEASED).items
    assert (item.id, item.lease_id, item.attributes) == (leased, lease.id, {"a": "1"})
    [item] = queue.peek("dead").items
    assert (item.id, item.last_error, item.batch) == (dead, "dead on purpose", "b")
    assert item.reason
    assert counts(queue) == (1, 1, 1, 1)


def test_peeking_goes_page_by_page(queue: queueber.Queue) -> None:
    ids = queue.add([b"%d" % n for n in range(150)])

    page = queue.peek(limit=90)
    rest = queue.peek(after=page.next)

    assert [item.id for item in [*page.items, *rest.items]] == ids
    assert rest.next == b""
    assert [item.id for item in queue.peek_all("ready")] == ids
    assert list(queue.peek_all("leased")) == list(queue.peek_all("leased")) == []


def test_cancelled_items_are_gone_whatever_their_state(queue: queueber.Queue) -> None:
    [leased] = queue.add(b"leased")
    lease = queue.poll()
    [delayed] = queue.add(b"delayed", delay=60)
    [ready] = queue.add(b"ready")

    assert queue.cancel([ready, delayed, leased, bytes(16)]) == [True, True, True, False]

    assert counts(queue) == (0, 0, 0, 0)
    assert lease.remove() == [False]
    assert queue.cancel(ready) == [False]
    assert queue.cancel([]) == []
    assert queue.stats().cancelled_total == 3


def test_items_are_rescheduled_to_a_moment_a_delay_or_now(queue: queueber.Queue) -> None:
    [leased] = queue.add(b"leased")
    lease = queue.poll()
    [delayed] = queue.add(b"delayed", delay=600)
    [ready] = queue.add(b"ready")
    at = datetime.now(UTC) + timedelta(hours=1)

    assert queue.reschedule([leased, delayed, ready], at=at) == [False, True, True]

    visible_ms = [item.at_ms for item in queue.peek("delayed").items]
    assert visible_ms == [pytest.approx(at.timestamp() * 1000, abs=5000)] * 2
    assert queue.reschedule(ready, delay=timedelta(minutes=1)) == [True]
    assert [item.id for item in queue.peek("delayed").items] == [ready, delayed]
    assert queue.reschedule(delayed, delay=0) == [True]
    assert queue.reschedule(ready, at=at - timedelta(days=1)) == [True]
    assert queue.reschedule([], delay=0) == []
    assert counts(queue) == (2, 0, 1, 0)
    assert queue.poll(5).ids == [delayed, ready]
    assert lease.remove() == [True]


def test_purge_deletes_the_items_of_one_state(queue: queueber.Queue) -> None:
    queue.add([b"x"] * 2500)
    queue.add([b"x"] * 3, delay=60)

    assert queue.purge("ready") == 2500
    assert counts(queue) == (0, 3, 0, 0)
    assert queue.purge("delayed") == 3
    assert queue.purge("ready") == 0


def test_purge_ends_though_others_add(queue: queueber.Queue) -> None:
    queue.add([b"x"] * 3000)
    is_over = False

    def add_until_over() -> None:
        while not is_over:
            queue.add([b"y"] * 100)

    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add_until_over)
        purged = queue.purge("ready")
        is_over = True
        adding.result()

    assert purged >= 3000


def test_dead_letters_are_redriven_by_id_or_all_of_them(client: queueber.Client) -> None:
    client.create_queue("redriven", attempts_max=1)
    queue = client.queue("redriven")
    ids = queue.add([b"%d" % n for n in range(2005)])
    assert sorted(kill_all(queue)) == ids

    assert queue.redrive([ids[0], ids[1], bytes(16)]) == 2
    assert queue.redrive([]) == 0
    assert counts(queue) == (2, 0, 0, 2003)
    assert queue.redrive() == 2003
    assert counts(queue) == (2005, 0, 0, 0)
    assert queue.redrive() == 0
    assert queue.stats().redriven_total == 2005


def test_a_paused_queue_serves_no_poll_until_it_is_resumed(queue: queueber.Queue) -> None:
    queue.add(b"x")
    queue.pause()
    assert not queue.poll(wait=0.1)
    assert queue.stats().paused_until_ms
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.poll, wait=30)
        queue.add(b"y")
        queue.resume()

        assert waiting.result()
    assert queue.stats().paused_until_ms == 0


def test_a_pause_with_an_end_ends_by_itself(queue: queueber.Queue) -> None:
    queue.add(b"x")
    queue.pause(0.3)

    assert not queue.poll()
    assert queue.poll(wait=10)


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_given_in_the_words_of_users(client: queueber.Client) -> None:
    client.create_queue(
        "set",
        items_max=1,
        bytes_max=2,
        item_bytes_max=3,
        lease=1.5,
        attempts_max=7,
        backoff=Backoff(base=0.5, factor=3, cap=60, jitter=0.5),
        dedup_window=2,
        result_age=3,
        result_bytes_max=4,
        concurrency_max=5,
        rate=(100, 0.5),
        cap_by="who",
        cap_by_concurrency_max=6,
        cap_by_rate=(7, 60),
        dead_age=timedelta(days=2),
    )

    assert client.queue("set").stats().settings == queueber.QueueSettings(
        items_max=1,
        bytes_max=2,
        item_bytes_max=3,
        lease_ms=1500,
        attempts_max=7,
        backoff_base_ms=500,
        backoff_factor=3.0,
        backoff_cap_ms=60_000,
        backoff_jitter=0.5,
        dedup_window_ms=2000,
        result_age_ms=3000,
        result_bytes_max=4,
        concurrency_max=5,
        rate_items=100,
        rate_ms=500,
        cap_by="who",
        cap_by_concurrency_max=6,
        cap_by_rate_items=7,
        cap_by_rate_ms=60_000,
        dead_age_ms=2 * 86_400_000,
    )


def test_age_of_dead_letters_is_set_and_taken_away(client: queueber.Client) -> None:
    client.create_queue("aged", dead_age=1.5)
    aged = client.queue("aged").stats().settings

    client.configure_queue("aged", dead_age=None)

    assert aged == queueber.QueueSettings(dead_age_ms=1500)
    assert client.queue("aged").stats().settings == queueber.QueueSettings()


def test_a_cap_by_an_attribute_is_changed_without_naming_it_again(
    client: queueber.Client,
) -> None:
    client.create_queue("capped-apart", cap_by="who", cap_by_concurrency_max=1)

    client.configure_queue("capped-apart", cap_by_concurrency_max=2, cap_by_rate=(5, 1))
    both = client.queue("capped-apart").stats().settings
    client.configure_queue("capped-apart", cap_by_rate=None)

    expected = queueber.QueueSettings(cap_by="who", cap_by_concurrency_max=2)
    assert both == replace(expected, cap_by_rate_items=5, cap_by_rate_ms=1000)
    assert client.queue("capped-apart").stats().settings == expected


def test_a_rate_is_taken_away_with_none(client: queueber.Client) -> None:
    client.create_queue("rated", rate=(100, 60))

    client.configure_queue("rated", rate=None)

    assert client.queue("rated").stats().settings == queueber.QueueSettings()


def test_caps_hold_for_all_pollers(client: queueber.Client) -> None:
    client.create_queue("capped", concurrency_max=2)
    queue = client.queue("capped")
    queue.add([b"a", b"b", b"c"])

    first = queue.poll(5)
    assert len(first.items) == 2
    assert not queue.poll(5, wait=0).items
    first.remove()
    assert len(queue.poll(5).items) == 1


def test_configuring_changes_what_is_named_and_leaves_the_rest(client: queueber.Client) -> None:
    client.create_queue("changing", items_max=10, lease=5)

    client.configure_queue("changing", items_max=20, backoff=[1, 2.5])
    settings = client.queue("changing").stats().settings
    assert (settings.items_max, settings.lease_ms) == (20, 5000)
    assert settings.backoff_ms == (1000, 2500)

    client.configure_queue("changing", backoff=Backoff(base=2))
    settings = client.queue("changing").stats().settings
    assert (settings.items_max, settings.backoff_ms) == (20, ())
    assert settings.backoff_base_ms == 2000


def test_a_queue_that_is_not_there_cannot_be_configured_and_is_not_made(
    client: queueber.Client,
) -> None:
    with pytest.raises(queueber.NotFound):
        client.configure_queue("never-made", items_max=1)

    assert "never-made" not in {stats.name for stats in client.queues()}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"lease": 0}, "lease: 0 is too short"),
        ({"lease": "long"}, "lease: 'long'"),
        ({"lease": 604_801}, "lease: 604801 s is too long; the limit is 604800"),
        ({"dedup_window": 1e9}, "dedup_window: 1000000000 s is too long; the limit is 2592000"),
        ({"result_age": 1e9}, "result_age: 1000000000 s is too long; the limit is 31622400"),
        ({"dead_age": 1e9}, "dead_age: 1000000000 s is too long; the limit is 31622400"),
        ({"dead_age": -1}, "dead_age: -1"),
        ({"dead_age": "old"}, "dead_age: 'old'"),
        ({"backoff": [1e9]}, "backoff: 1000000000 s is too long; the limit is 31622400"),
        ({"attempts_max": -1}, "attempts_max: -1"),
        ({"isolation": 1}, "isolation: 1 is neither True nor False"),
        ({"attempts_max": 1001}, "attempts_max: 1001 is too many; the limit is 1000"),
        ({"backoff": 5}, "backoff: 5 is neither"),
        ({"backoff": []}, "backoff: it has 0 delays; give 1 to 100"),
        ({"backoff": [1] * 101}, "backoff: it has 101 delays"),
        ({"backoff": Backoff(factor=0.5)}, "backoff.factor: 0.5 is not a number from 1"),
        ({"backoff": Backoff(jitter=1.5)}, "backoff.jitter: 1.5 is not a number from 0 to 1"),
        ({"backoff": Backoff(base=-1)}, "backoff.base: -1"),
        ({"dedup_window": -1}, "dedup_window: -1"),
        ({"result_bytes_max": 1.5}, "result_bytes_max: 1.5"),
        ({"concurrency_max": 1_000_001}, "concurrency_max: 1000001 is too many"),
        ({"cap_by": 5}, "cap_by: 5 is not the name of an attribute"),
        ({"cap_by": "x" * 257}, "cap_by: it has 257 bytes; the limit is 256"),
        ({"cap_by": "\ud800"}, r"cap_by: '\ud800' cannot be encoded as UTF-8"),
        ({"cap_by_rate": (0, 60)}, "cap_by_rate: 0 items; give 1 or more, or None for no limit"),
        ({"cap_by_rate": (5, 86_401)}, "cap_by_rate: 86401 s is too long; the limit is 86400"),
        ({"rate": 5}, "rate: 5 is not a pair of items and seconds, as (100, 60)"),
        ({"rate": (0, 60)}, "rate: 0 items; give 1 or more, or None for no limit"),
        ({"rate": (5, 0)}, "rate: 0 is too short"),
        ({"rate": (5, 86_401)}, "rate: 86401 s is too long; the limit is 86400"),
        ({"colour": "red"}, "colour: there is no such setting"),
    ],
)
def test_bad_settings_are_refused(
    client: queueber.Client, settings: dict[str, object], told: str
) -> None:
    for call in (client.create_queue, client.configure_queue):
        with pytest.raises(queueber.InvalidArgument) as caught:
            call("refused", **settings)  # type: ignore[arg-type]
        assert told in str(caught.value)

    assert "refused" not in {stats.name for stats in client.queues()}


@pytest.mark.parametrize("cap", [{"cap_by_concurrency_max": 1}, {"cap_by_rate": (1, 1)}])
def test_a_cap_by_an_attribute_is_refused_without_its_name(
    client: queueber.Client, cap: dict[str, object]
) -> None:
    client.create_queue("uncapped")
    before = client.queue("uncapped").stats().settings

    told = f"cap_by: it is empty; name the attribute that {next(iter(cap))} is about"
    with pytest.raises(queueber.InvalidArgument, match=told):
        client.create_queue("refused", **cap)  # type: ignore[arg-type]
    with pytest.raises(queueber.InvalidArgument, match=told):
        client.configure_queue("uncapped", **cap)  # type: ignore[arg-type]

    assert "refused" not in {stats.name for stats in client.queues()}
    assert client.queue("uncapped").stats().settings == before


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda q: q.peek("gone"), "state: 'gone' is none of ready, delayed, leased, dead"),
        (lambda q: q.peek(limit=0), "limit: 0"),
        (lambda q: q.peek(limit=101), "limit: 101 is too many; the limit is 100"),
        (lambda q: q.peek(after="x"), "after: 'x'"),
        (lambda q: q.purge(None), "state: None"),
        (lambda q: q.cancel(b"short"), "ids: b'short'"),
        (lambda q: q.reschedule(b"short", delay=0), "ids: b'short'"),
        (lambda q: q.reschedule([ID]), "at: give either at or delay"),
        (
            lambda q: q.reschedule([ID], at=datetime.now(UTC), delay=1),
            "at: give either at or delay",
        ),
        (lambda q: q.reschedule([ID], at=NAIVE), "at: 2026-01-01 00:00:00 has no"),
        (lambda q: q.reschedule([ID], delay=-1), "delay: -1"),
        (lambda q: q.reschedule([ID], delay=1e9), "delay: "),
        (lambda q: q.redrive("text"), "ids: 'text'"),
        (lambda q: q.pause(0), "seconds: 0"),
    ],
)
def test_bad_arguments_name_the_field(
    queue: queueber.Queue, call: Callable[[queueber.Queue], object], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        call(queue)

    assert told in str(caught.value)


# --- leases and batches ---------------------------------------------------------------------------


def test_leases_are_listed_with_their_holders_page_by_page(server: ServerProcess) -> None:
    with queueber.connect(server.address, name="ocr-7") as client:
        queue = client.queue("held")
        ids = queue.add([b"x"] * 5)
        leases = [queue.poll(count, lease=60) for count in (3, 1, 1)]
        leases[0].remove(ids[:1])

        page = queue.leases(limit=2)
        rest = queue.leases(after=page.next.hex())

        listed = [*page.leases, *rest.leases]
        assert [each.lease_id for each in listed] == [lease.id for lease in leases]
        assert [each.items for each in listed] == [2, 1, 1]
        assert {each.expires_at_ms - each.polled_at_ms for each in listed} == {60_000}
        assert all(each.holder.startswith("ocr-7 (127.0.0.1:") for each in listed)
        assert rest.next == b""
        queue.purge("leased")
        assert queue.leases() == LeasePage([], b"")


def test_batches_are_listed_with_their_receipts_page_by_page(queue: queueber.Queue) -> None:
    for name in ("one", "two", "three"):
        queue.add([b"x", b"y"], batch=name)
    queue.poll(3).remove()

    page = queue.batches(limit=2)
    rest = queue.batches(before=page.next)

    listed = [*page.batches, *rest.batches]
    assert [each.receipt for each in listed] == [
        queue.receipt(name) for name in ("three", "two", "one")
    ]
    assert [each.number for each in listed] == [3, 2, 1]
    assert rest.next == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"limit": 0}, "limit: 0 is not a number, 1 or more"),
        ({"limit": 1001}, "limit: 1001 is too many; the limit is 1000"),
        ({"after": b"short"}, "after: b'short' is not an id of 16 bytes"),
    ],
)
def test_a_list_of_leases_with_wrong_arguments_is_refused(
    queue: queueber.Queue, arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument, match=told):
        queue.leases(**arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"limit": 251}, "limit: 251 is too many; the limit is 250"),
        ({"before": -1}, "before: -1 is not a number, 0 or more"),
        ({"before": 2**32}, "before: 4294967296 is too many; the limit is 4294967295"),
    ],
)
def test_a_list_of_batches_with_wrong_arguments_is_refused(
    queue: queueber.Queue, arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument, match=told):
        queue.batches(**arguments)


def test_a_shared_group_lists_its_leases_and_has_no_batches(client: queueber.Client) -> None:
    topic = client.topic("listed")
    topic.create_group("workers", kind="shared")
    topic.publish([b"a", b"b"])
    lease = topic.group("workers").poll(2)

    [held] = topic.group("workers").leases().leases

    assert (held.lease_id, held.items, bool(held.holder)) == (lease.id, 2, True)
    with pytest.raises(queueber.FailedPrecondition, match="which has no 'listBatches'"):
        topic.group("workers").batches()


def test_items_are_cancelled_by_key_and_by_batch_in_every_state(client: queueber.Client) -> None:
    client.create_queue("cancel-many", attempts_max=1)
    queue = client.queue("cancel-many")
    queue.add(b"keyed", key="k")
    assert (queue.cancel_key("k"), queue.cancel_key("k")) == (True, False)
    queue.add(b"dead", batch="b")
    kill_all(queue)
    kept = queue.add([b"plain", b"other"], batch="other")
    held = queue.poll(2)
    queue.add([b"x"] * 1500, batch="b")
    leased = queue.poll(3)
    queue.add([b"y"] * 10, batch="b", delay=60)

    assert queue.cancel_batch("b") == 1511

    assert counts(queue) == (0, 0, 2, 0)
    receipt = queue.receipt("b")
    assert (receipt.added, receipt.dead, receipt.live, receipt.complete) == (1511, 1511, 0, True)
    assert leased.complete([b""] * 3) == [False] * 3
    assert held.remove() == [True] * 2
    assert sorted(kept) == sorted(held.ids)
    assert queue.cancel_batch("b") == 0
    with pytest.raises(queueber.InvalidArgument, match="batch: "):
        queue.cancel_batch("")
    with pytest.raises(queueber.InvalidArgument, match="key: "):
        queue.cancel_key("k" * 513)
