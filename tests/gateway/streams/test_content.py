"""What is appended as messages, and messages as answers and events."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.gateway.problems import Problem
from queueber.gateway.streams.content import as_event_data, joined, to_messages
from queueber.limits import PAYLOAD_BYTES_MAX, PUBLISH_MESSAGES_MAX
from queueber.model import bare_type


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (b'{"a": 1}', [b'{"a": 1}']),
        (b" 7 ", [b"7"]),
        (b"[]", []),
        (b' [1, "x" ,{"a" : [2]}]', [b"1", b'"x"', b'{"a" : [2]}']),
        (b"[[1,2]]", [b"[1,2]"]),
        ('["ä"]'.encode(), ['"ä"'.encode()]),
        (b"1e400", [b"1e400"]),
        (b"12345678901234567890123", [b"12345678901234567890123"]),
    ],
)
def test_one_array_of_json_is_as_many_messages_with_the_bytes_that_were_sent(
    body: bytes, messages: list[bytes]
) -> None:
    assert to_messages("Application/JSON; charset=utf-8", body) == messages


@pytest.mark.parametrize(
    "body",
    [b" ", b"{", b"[1,]", b"nope", b"[NaN]", b'["\xff"]', b"[1] 2", b'["\x01"]', b"[" * 100_000],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        to_messages("application/json", body)

    assert refused.value.status == 400
    assert refused.value.detail.startswith("body: it is n")


def test_too_many_values_are_refused_as_too_large() -> None:
    body = b"[" + b",".join([b"1"] * (PUBLISH_MESSAGES_MAX + 1)) + b"]"

    with pytest.raises(Problem) as refused:
        to_messages("application/json", body)

    assert (refused.value.status, refused.value.code) == (413, "RESOURCE_EXHAUSTED")


def test_bytes_are_one_message_unless_they_are_too_large_for_one() -> None:
    large = bytes(PAYLOAD_BYTES_MAX) + b"x"

    assert to_messages("image/png", b"abc") == [b"abc"]
    assert to_messages("image/png", b"") == []
    assert to_messages("image/png", large) == [bytes(PAYLOAD_BYTES_MAX), b"x"]


def test_a_large_text_is_not_cut_inside_a_character() -> None:
    text = ("a" + "€" * (PAYLOAD_BYTES_MAX // 2)).encode()

    pieces = to_messages("text/plain", text)

    assert b"".join(pieces) == text
    assert all(len(piece) <= PAYLOAD_BYTES_MAX for piece in pieces)
    assert [piece.decode()[-1] for piece in pieces] == ["€"] * len(pieces)


@settings(deadline=None)
@given(st.lists(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)))
def test_json_comes_back_as_one_array(values: list[object]) -> None:
    messages = to_messages("application/json", json.dumps(values).encode())

    assert json.loads(joined("application/json", messages)) == values


def test_types_are_compared_without_parameters_and_case() -> None:
    assert bare_type("Text/Plain; charset=utf-8") == bare_type("text/plain")


@given(st.binary())
def test_no_content_can_end_an_event(body: bytes) -> None:
    text = as_event_data("text/plain", body)

    lines = text.split(b"\n")
    assert lines.pop() == b""
    assert all(line.startswith(b"data:") and b"\r" not in line for line in lines)
    expected = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert b"\n".join(line.removeprefix(b"data:") for line in lines) == expected


@given(st.binary())
def test_other_types_are_base64_in_events(body: bytes) -> None:
    assert as_event_data("image/png", body) == b"data:" + base64.b64encode(body) + b"\n"
