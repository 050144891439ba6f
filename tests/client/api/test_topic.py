"""Topics of the blocking client, on a real server: publish, read, operate."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import queueber
from queueber import NewMessage


def test_what_is_published_is_read_with_all_that_belongs_to_it(topic: queueber.Topic) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)

    published = topic.publish([b"a", (b"b", "k"), NewMessage(b"c", "k", {"traceparent": "00-1"})])
    page = topic.read()

    assert list(published.offsets) == [0, 1, 2]
    assert list(published.partitions) == [0, 0, 0]
    rows = [(m.offset, m.payload, m.key, dict(m.attributes)) for m in page]
    assert rows == [
        (0, b"a", "", {}),
        (1, b"b", "k", {}),
        (2, b"c", "k", {"traceparent": "00-1"}),
    ]
    assert [m.id for m in page] == list(published.ids)
    assert [m.sequence for m in page] == list(published.sequences)
    assert all(before < m.timestamp < datetime.now(UTC) + timedelta(seconds=1) for m in page)
    assert (page.next_offset, page.end_offset, page.missed, page.is_at_end) == (3, 3, 0, True)
    assert page.payloads == [b"a", b"b", b"c"]


def test_a_read_begins_and_ends_where_it_is_told(topic: queueber.Topic) -> None:
    topic.publish([b"%d" % n for n in range(10)])

    assert topic.read(start=7).payloads == [b"7", b"8", b"9"]
    assert topic.read(last=2).payloads == [b"8", b"9"]
    assert topic.read(start="latest").payloads == []
    assert topic.read(start=2, limit=3).payloads == [b"2", b"3", b"4"]
    assert topic.read(start=2, end_offset=4).payloads == [b"2", b"3"]
    assert topic.read(time=0, limit=1).payloads == [b"0"]
    assert topic.read(time=datetime.now(UTC) + timedelta(hours=1)).payloads == []
    assert len(topic.read(bytes=3)) < 10
    assert topic.read(without="contents").payloads == [b""] * 10


def test_an_offset_that_is_not_there_names_both_ends_unless_it_moves(topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b", b"c"])
    topic.trim(start=2)

    with pytest.raises(queueber.OutOfRange) as refused:
        topic.read(start=0)
    assert refused.value.numbers == {"first": 2, "next": 3}
    moved = topic.read(start=0, moves=True)
    assert (moved.payloads, moved.missed) == ([b"c"], 2)


def test_a_read_of_a_group_waits_longer_than_one_call(
    topic: queueber.Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait is several calls, and only the first asks where the group is."""
    monkeypatch.setattr("queueber.client.calls.reads._WAIT_ROUND_MS", 10)
    topic.create_group("g")

    page = topic.read(group="g", wait=0.05)

    assert (page.payloads, page.next_offset) == ([], 0)


def test_a_read_waits_for_the_first_message(topic: queueber.Topic) -> None:
    topic.publish(b"old")
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(topic.read, start=1, wait=10)
        topic.publish(b"new")

        assert reading.result().payloads == [b"new"]


def test_messages_are_read_page_by_page(topic: queueber.Topic) -> None:
    topic.publish([b"%d" % n for n in range(25)])

    assert [m.offset for m in topic.messages(limit=10)] == list(range(25))
    assert [m.payload for m in topic.messages(start=23)] == [b"23", b"24"]


def test_small_pages_are_cut_from_what_was_read_ahead(topic: queueber.Topic) -> None:
    def all_of(message: queueber.Message) -> tuple[object, ...]:
        m = message
        return (m.offset, m.payload, m.key, dict(m.attributes), m.id, m.sequence, m.timestamp_ms)

    topic.publish([b"gone", b"gone, too"])
    for n in range(1, 5):
        topic.publish([NewMessage(b"%d/%d" % (n, k), f"k{k}", {"n": str(n)}) for k in range(n)])
    topic.publish([b"last"])
    topic.trim(start=2)
    whole = topic.read()

    for limit in (1, 2, 3, 4, 10, 11, 12):
        pages = list(topic.pages(start=0, moves=True, limit=limit))
        read = [all_of(message) for page in pages for message in page]

        assert read == [all_of(message) for message in whole]
        assert {len(page) for page in pages[:-1]} <= {limit}
        assert [page.missed for page in pages] == [2] + [0] * (len(pages) - 1)
        assert [page.next_offset for page in pages] == [page[-1].offset + 1 for page in pages]
        assert [page.is_at_end for page in pages] == [False] * (len(pages) - 1) + [True]


def test_small_publishes_of_many_threads_keep_their_own_answers(topic: queueber.Topic) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: topic.publish([(b"%d" % n, f"k{n}")]), range(200)))

    stored = {m.offset: (m.payload, m.key, m.id) for m in topic.messages()}
    for n, answer in enumerate(answers):
        (offset,), (id,) = answer.offsets, answer.ids
        assert stored[offset] == (b"%d" % n, f"k{n}", id)


def test_a_publish_may_depend_on_where_the_topic_ends(topic: queueber.Topic) -> None:
    topic.publish(b"a", expected_offset=0)

    with pytest.raises(queueber.FailedPrecondition) as refused:
        topic.publish(b"b", expected_offset=0)

    assert refused.value.numbers["tail"] == 1
    assert topic.read().payloads == [b"a"]


def test_what_a_producer_repeats_is_recognised(topic: queueber.Topic) -> None:
    first = topic.publish([b"a", b"b"], producer=("importer", 1, 1))
    again = topic.publish([b"a", b"b"], producer=("importer", 1, 1))

    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert list(again.offsets) == list(first.offsets)
    with pytest.raises(queueber.Aborted):
        topic.publish(b"d", producer=("importer", 1, 3))
    assert topic.read().payloads == [b"a", b"b"]


def test_a_second_message_with_a_dedup_id_is_not_stored(topic: queueber.Topic) -> None:
    topic.publish(NewMessage(b"a", dedup_id="once"))
    again = topic.publish([NewMessage(b"a", dedup_id="once"), NewMessage(b"b")])

    assert list(again.duplicates) == [True, False]
    assert topic.read().payloads == [b"a", b"b"]


def test_a_closed_topic_takes_no_more(topic: queueber.Topic) -> None:
    topic.publish(b"last", close=True)

    with pytest.raises(queueber.FailedPrecondition):
        topic.publish(b"more")
    page = topic.read(wait=10)
    assert (page.payloads, page.is_closed) == ([b"last"], True)
    assert topic.describe().is_closed


def test_topics_are_created_configured_listed_and_deleted(client: queueber.Client) -> None:
    assert client.create_topic("life/a", partitions=2, retention=60)
    assert not client.create_topic("life/a", partitions=2, retention=60)
    with pytest.raises(queueber.AlreadyExists):
        client.create_topic("life/a", retention=61)
    client.create_topic("life/b")

    client.configure_topic("life/a", ttl=100, partitions=3)

    config = client.topic("life/a").describe().config
    assert (config.partitions, config.settings.ttl_ms, config.settings.retention_ms) == (
        3, 100_000, 60_000,
    )  # fmt: skip
    assert list(client.topics("life/")) == ["life/a", "life/b"]
    assert list(client.topics("life/", after="life/a")) == ["life/b"]
    assert (client.delete_topic("life/b"), client.delete_topic("life/b")) == (True, False)
    assert list(client.topics("life/")) == ["life/a"]
    with pytest.raises(queueber.NotFound):
        client.topic("life/b", must_exist=True).describe()


def test_many_topics_get_their_messages_or_none(client: queueber.Client) -> None:
    published = client.publish({"many/a": [b"1", b"2"], "many/b": b"3"})

    assert [list(published[name].offsets) for name in ("many/a", "many/b")] == [[0, 1], [0]]
    client.topic("many/b").close()
    with pytest.raises(queueber.FailedPrecondition):
        client.publish({"many/a": b"4", "many/b": b"5"})
    assert client.topic("many/a").read().payloads == [b"1", b"2"]


def test_a_fork_shares_what_was_before(client: queueber.Client, topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b", b"c"])

    assert topic.fork(f"{topic.name}-fork", 2)
    assert not topic.fork(f"{topic.name}-fork", 2)
    fork = client.topic(f"{topic.name}-fork", must_exist=True)
    fork.publish(b"x")
    topic.publish(b"d")

    assert fork.read().payloads == [b"a", b"b", b"x"]
    assert topic.read().payloads == [b"a", b"b", b"c", b"d"]
    assert fork.describe().parent == topic.name


def test_messages_are_found_by_id_and_by_sequence(topic: queueber.Topic) -> None:
    published = topic.publish([b"a", b"b"])

    assert topic.find(published.ids[1]) == (0, 1)
    assert topic.find(sequence=published.sequences[1]) == (0, 1)
    assert topic.find(b"\1" * 16) is None


def test_a_topic_that_must_exist_is_not_created_and_fails_alone(client: queueber.Client) -> None:
    """Concurrent publishes share a call of the server; what it refuses is found among them."""
    names = [f"existing/{number}" for number in range(5)]
    for name in names:
        client.create_topic(name)
    topics = [client.topic(name, must_exist=True) for name in (*names[:3], "missing", *names[3:])]

    with ThreadPoolExecutor(len(topics) * 4) as pool:
        sent = [pool.submit(each.publish, b"m") for each in topics * 4]
        errors = [future.exception() for future in sent]

    assert [type(error) for error in errors] == [
        queueber.NotFound if topic.name == "missing" else type(None) for topic in topics * 4
    ]
    assert [client.topic(name).describe().partitions[0].next_offset for name in names] == [4] * 5
    assert "missing" not in list(client.topics())
