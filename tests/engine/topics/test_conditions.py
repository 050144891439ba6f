"""Conditions: what a publication demands, in which order; a refused one changes nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from queueber.engine.topics.publish import publish
from queueber.errors import Aborted, FailedPrecondition
from queueber.model import NewMessages, Producer, Publication, Published, TopicSettings, bare_type
from tests.support.dumps import dump
from tests.support.topic_rig import TOPIC, TopicRig


@pytest.fixture
def stream() -> Iterator[TopicRig]:
    """A topic with a content type, a schema, a text sequence and one message of a producer."""
    rig = TopicRig(TopicSettings())
    rig.name = "stream"
    settings = TopicSettings(schema_version=2)
    rig.run(rig.topics.create, "stream", settings, content_type="text/plain; charset=utf-8")
    send(rig, b"0", text_sequence="b", producer=Producer("p", 0, 1))
    yield rig
    rig.close()


def send(rig: TopicRig, *payloads: bytes, **conditions: Any) -> Published:
    given = {"schema_version": 2} | conditions
    publication = Publication(rig.name, NewMessages(payloads), 0, **given)
    return rig.run(publish, rig.topics, [(rig.topic, publication)])[0]


WRONG: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({"content_type": "text/html"}, {"tail": 1, "content_type": 1}),
    ({"text_sequence": "b"}, {"tail": 1, "text_sequence": 1}),
    ({"schema_version": 3}, {"schema_version": 2}),
    ({"expected_offset": 2}, {"tail": 1}),
]


@pytest.mark.parametrize(("wrong", "numbers"), WRONG)
def test_a_publication_that_is_refused_changes_nothing(
    stream: TopicRig, wrong: dict[str, Any], numbers: dict[str, int]
) -> None:
    before = dump(stream.store)

    with pytest.raises(FailedPrecondition) as refused:
        send(stream, b"1", producer=Producer("p", 0, 2), closes=True, **wrong)

    assert refused.value.numbers == numbers
    assert dump(stream.store) == before
    assert send(stream, b"1", producer=Producer("p", 0, 2)).last_number == 2


@pytest.mark.parametrize("first", range(len(WRONG)))
def test_conditions_are_checked_in_their_order(stream: TopicRig, first: int) -> None:
    wrong = {name: value for given, _ in WRONG[first:] for name, value in given.items()}

    with pytest.raises(FailedPrecondition) as refused:
        send(stream, b"1", **wrong)

    assert refused.value.numbers == WRONG[first][1]


def test_a_closed_topic_tells_so_first_and_answers_repeats_before(stream: TopicRig) -> None:
    stream.run(stream.topics.close, stream.topic)
    wrong = {name: value for given, _ in WRONG for name, value in given.items()}

    with pytest.raises(FailedPrecondition) as refused:
        send(stream, b"1", producer=Producer("p", 0, 2), **wrong)
    assert refused.value.numbers == {"tail": 1, "closed": 1}

    again = send(stream, b"0", producer=Producer("p", 0, 1), **wrong)
    told = (again.is_repeat, again.end_offset, again.last_number, again.is_closed)
    assert told == (True, 1, 1, True)


def test_an_answer_of_a_repeat_is_about_the_topic_as_it_is_now(stream: TopicRig) -> None:
    send(stream, b"1", b"2", producer=Producer("p", 0, 2))

    again = send(stream, b"0", producer=Producer("p", 0, 1))

    assert (again.end_offset, again.last_number, list(again.offsets)) == (3, 2, [0])


def test_the_number_decides_whatever_the_payloads_are(stream: TopicRig) -> None:
    before = dump(stream.store)

    again = send(stream, b"other", b"more", producer=Producer("p", 0, 1), number_decides=True)
    assert (again.is_repeat, list(again.offsets)) == (True, [0])
    assert dump(stream.store) == before

    with pytest.raises(Aborted, match="had 1 items, and has 2 now"):
        send(stream, b"other", b"more", producer=Producer("p", 0, 1))


def test_a_text_sequence_is_compared_by_its_bytes_and_survives_a_restart(
    stream: TopicRig,
) -> None:
    for text in ("ba", "z", "é", "\N{LINEAR B SYLLABLE B008 A}", "\U0010ffff" * 256):
        send(stream, b"x", text_sequence=text)
    stream.reopen()
    stream.name = "stream"

    with pytest.raises(FailedPrecondition):
        send(stream, b"x", text_sequence="\ufffd")
    assert stream.topic.record.text_sequence == "\U0010ffff" * 256


def test_closing_alone_needs_no_schema(stream: TopicRig) -> None:
    closed = send(stream, schema_version=0, closes=True)

    assert (closed.is_closed, closed.end_offset) == (True, 1)
    assert send(stream, schema_version=0, closes=True).is_closed, "it may be repeated"


def test_a_topic_of_several_partitions_tells_no_end() -> None:
    rig = TopicRig(partitions=2)
    try:
        publication = Publication(TOPIC, NewMessages([b"x"]), 1)
        (published,) = rig.run(publish, rig.topics, [(rig.topic, publication)])
        assert (list(published.offsets), published.end_offset) == ([0], 0)
    finally:
        rig.close()


def test_parameters_and_letter_case_of_a_content_type_do_not_count() -> None:
    types = ("Text/HTML", "text/html;charset=x", " text/html ; a=b", "text/html")

    assert {bare_type(each) for each in types} == {"text/html"}
