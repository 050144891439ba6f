"""The conditions of publishes, first messages, cut forks and descriptions, through a server."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

import queueber
from queueber.errors import Aborted, AlreadyExists, FailedPrecondition, NotFound, OutOfRange


def refused(call: Callable[[], object], error: type[queueber.QueueberError]) -> dict[str, int]:
    """The numbers of the error that a call must end with."""
    with pytest.raises(error) as raised:
        call()
    return raised.value.numbers


@pytest.fixture(autouse=True)
def _without_topics(client: queueber.Client) -> Iterator[None]:
    yield
    for name in ("again", "fork", "stream", "t"):
        client.delete_topic(name)


@pytest.fixture
def stream(client: queueber.Client) -> queueber.Topic:
    client.create_topic("stream", content_type="application/json; charset=utf-8", messages=b"1")
    return client.topic("stream", must_exist=True)


def test_a_topic_is_created_with_its_first_messages(client: queueber.Client) -> None:
    assert client.create_topic("t", messages=[b"a", b"b"], close=True)
    assert not client.create_topic("t", messages=[b"c"])

    page = client.topic("t").read()
    assert (page.payloads, page.is_closed, page.end_offset) == ([b"a", b"b"], True, 2)


def test_a_topic_that_cannot_take_its_first_messages_is_not_created(
    client: queueber.Client,
) -> None:
    limits = {"retention_messages": 1, "refuses_when_full": True}
    with pytest.raises(queueber.errors.ResourceExhausted):
        client.create_topic("t", messages=[b"a", b"b"], **limits)  # type: ignore[arg-type]

    with pytest.raises(NotFound):
        client.describe_topic("t")


def test_the_answer_says_where_the_topic_goes_on(stream: queueber.Topic) -> None:
    first = stream.publish([b"2", b"3"])
    assert (first.end_offset, first.last_number, first.is_closed) == (3, 0, False)

    producer = stream.publish(b"4", producer=("p", 0, 1))
    assert (producer.end_offset, producer.last_number, producer.is_closed) == (4, 1, False)
    stream.publish(b"5", producer=("p", 0, 2), close=True)

    repeat = stream.publish(b"4", producer=("p", 0, 1))
    assert repeat.is_repeat
    assert (repeat.end_offset, repeat.last_number, repeat.is_closed) == (5, 2, True)


def test_a_publish_names_the_content_type_of_its_topic(stream: queueber.Topic) -> None:
    assert stream.publish(b"2", content_type="APPLICATION/json").end_offset == 2

    numbers = refused(lambda: stream.publish(b"3", content_type="text/plain"), FailedPrecondition)
    assert numbers == {"tail": 2, "content_type": 1}


def test_a_text_sequence_rises_byte_by_byte(
    client: queueber.Client, stream: queueber.Topic
) -> None:
    stream.publish(b"2", text_sequence="2")
    stream.publish(b"3")
    for text in ("2", "10", "1é"):
        publish = partial(stream.publish, b"4", text_sequence=text)
        numbers = refused(publish, FailedPrecondition)
        assert numbers == {"tail": 3, "text_sequence": 1}
    stream.publish(b"4", text_sequence="2a")

    assert client.describe_topic("stream").text_sequence == "2a"
    assert stream.read().payloads == [b"1", b"2", b"3", b"4"]


def test_a_topic_with_a_schema_takes_only_messages_that_were_checked(
    client: queueber.Client,
) -> None:
    client.create_topic("t", schema_version=3, messages=b"1")
    topic = client.topic("t", must_exist=True)

    assert refused(lambda: topic.publish(b"2"), FailedPrecondition) == {"schema_version": 3}
    numbers = refused(lambda: topic.publish(b"2", schema_version=2), FailedPrecondition)
    assert numbers == {"schema_version": 3}
    topic.publish(b"2", schema_version=3)
    topic.publish((), close=True)

    assert topic.read().payloads == [b"1", b"2"]


def test_the_number_of_a_call_decides_if_the_producer_says_so(stream: queueber.Topic) -> None:
    stream.publish(b"2", producer=("p", 1, 1))

    assert stream.publish(b"other", producer=("p", 1, 1), number_decides=True).is_repeat
    with pytest.raises(Aborted):
        stream.publish(b"other", producer=("p", 1, 1))
    gap = refused(lambda: stream.publish(b"3", producer=("p", 1, 3)), Aborted)
    assert gap == {"expected": 2, "received": 3, "epoch": 1}
    unknown = refused(lambda: stream.publish(b"3", producer=("q", 1, 3)), Aborted)
    assert unknown == {"expected": 1, "received": 3}


def test_a_producer_closes_a_topic_once(stream: queueber.Topic) -> None:
    closed = stream.publish((), producer=("p", 1, 1), close=True)
    assert (closed.is_closed, closed.end_offset, closed.last_number) == (True, 1, 1)

    assert stream.publish((), producer=("p", 1, 1), close=True).is_repeat
    again = refused(
        lambda: stream.publish((), producer=("p", 1, 2), close=True), FailedPrecondition
    )
    assert again == {"tail": 1, "closed": 1}
    assert stream.publish((), close=True).is_closed


def test_a_fork_begins_with_a_part_of_a_message(
    client: queueber.Client, stream: queueber.Topic
) -> None:
    stream.publish([b"second", b"third"])

    assert stream.fork("fork", 1, cut_bytes=3, messages=[b"own"])
    assert not stream.fork("fork", 1, cut_bytes=3, messages=[b"other"])
    with pytest.raises(AlreadyExists):
        stream.fork("fork", 1, cut_bytes=2)
    fork = client.topic("fork", must_exist=True)
    assert fork.fork("again", 1, cut_bytes=1, close=True)
    page = client.topic("again", must_exist=True).read(tells_topic=True)

    assert fork.read().payloads == [b"1", b"sec", b"own"]
    assert (page.payloads, page.is_closed) == ([b"1", b"s"], True)
    source, info = client.describe_topic("stream"), client.describe_topic("again")
    assert (info.parent, info.fork_offset, info.cut_bytes) == ("fork", 1, 1)
    assert info.origin == source.origin == source.number != info.number
    assert (page.content_type, page.origin, page.number) == (
        "application/json; charset=utf-8",
        source.origin,
        info.number,
    )


@pytest.mark.parametrize(("offset", "cut_bytes"), [(0, 1), (0, 2), (1, 1)])
def test_a_fork_cannot_begin_with_more_than_a_message_has(
    client: queueber.Client, stream: queueber.Topic, offset: int, cut_bytes: int
) -> None:
    with pytest.raises(OutOfRange):
        stream.fork("fork", offset, cut_bytes=cut_bytes)

    with pytest.raises(NotFound):
        client.describe_topic("fork")
    assert client.describe_topic("stream").forks == 0


def test_a_topic_that_its_forks_keep_is_described(
    client: queueber.Client, stream: queueber.Topic
) -> None:
    stream.fork("fork")
    client.delete_topic("stream")

    info = client.describe_topic("stream")
    assert (info.is_deleted, info.forks) == (True, 1)
    assert refused(lambda: client.topic("stream", must_exist=True).read(), NotFound) == {"forks": 1}
    assert refused(stream.read, NotFound) == {"forks": 1}
    assert refused(lambda: client.create_topic("stream"), AlreadyExists) == {"forks": 1}


def test_a_topic_that_is_created_again_has_another_origin(
    client: queueber.Client, stream: queueber.Topic
) -> None:
    before = client.describe_topic("stream")
    client.delete_topic("stream")
    client.create_topic("stream")
    after = client.describe_topic("stream")

    assert before.origin != after.origin
    assert (after.origin, after.fork_offset) == (after.number, 0)


def test_a_page_has_its_messages_in_pieces(stream: queueber.Topic) -> None:
    stream.publish([b"ab", b"", (b"c", "key")])

    first, second = stream.read(start=0).packed
    assert (first.payloads, second.payloads) == (b"1", b"abc")
    assert second.split() == [b"ab", b"", b"c"]
    assert list(second.keys) == [b"", b"", b"key"]
