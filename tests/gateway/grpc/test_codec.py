"""Ids, names, and messages as they go over the wire; the generated code is current."""

import subprocess
import sys
import uuid
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber import errors
from queueber.client import Message
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.consumer import delivery_of
from queueber.gateway.grpc.names import (
    check_topic_name,
    is_topic_name,
    message_id_of,
    message_id_text,
)
from queueber.gateway.grpc.statuses import OWN_STATUSES, Status, status_of
from queueber.gateway.problems import too_busy
from queueber.ids import shifted
from queueber.wire.pages import Piece

ROOT = Path(__file__).parents[3]


class Columns:
    """A column of attributes, as an answer of the server has it."""

    partition = 0

    def __init__(self, attributes: dict[str, str]) -> None:
        self._attributes = attributes

    def attributes_of(self, _: int) -> dict[str, str]:
        return self._attributes


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_a_uuid_and_comes_back_as_it_was(message_id: bytes) -> None:
    text = message_id_text(message_id)
    assert text == str(uuid.UUID(bytes=message_id))
    assert message_id_of(text) == message_id


@given(st.text())
def test_what_is_no_uuid_is_no_id(text: str) -> None:
    try:
        wanted = uuid.UUID(text).bytes
    except ValueError:
        wanted = None
    assert message_id_of(text) == wanted


@given(
    st.binary(),
    st.dictionaries(st.text(), st.text(), max_size=5),
    st.binary(min_size=8, max_size=8),
    st.integers(0, 2**31),
    st.integers(0, 2**62),
    st.integers(0, 2**42),
    st.integers(0, 100),
)
def test_a_message_comes_back_as_it_was_published(
    payload: bytes, attributes: dict[str, str], head: bytes, low: int, sequence: int, at_ms: int,
    later: int,
) -> None:  # fmt: skip
    piece = Piece(later + 1, 10, at_ms, head + low.to_bytes(8), sequence)
    columns: object = Columns(attributes)
    message = Message(payload, 10 + later, later, piece, columns)  # type: ignore[arg-type]

    found = wire.SubscribeDownstream.FromString(delivery_of(message)).delivery

    assert (found.payload, dict(found.attributes)) == (payload, attributes)
    assert found.message_id == str(uuid.UUID(bytes=shifted(piece.id, later)))
    assert (found.sequence, found.timestamp) == (sequence + later, at_ms)


@given(st.text(alphabet="abz-AZ09._/ äñ", max_size=260))
def test_names_are_ascii_letters_digits_dashes_underscores_and_dots(name: str) -> None:
    allowed = set("abz-AZ09._")
    is_right = 1 <= len(name) <= 255 and set(name) <= allowed
    assert is_topic_name(name) == is_right
    if not is_right:
        with pytest.raises(errors.InvalidArgument, match=r"^topic: "):
            check_topic_name(name)


def test_every_code_has_a_status() -> None:
    for code in {each.code for each in _errors(errors.QueueberError)}:
        made = next(each for each in _errors(errors.QueueberError) if each.code == code)
        status, text = status_of(made("why"))
        assert text == "why"
        assert status.name == code or OWN_STATUSES[code] is status
    assert {each.name: each.value[0] for each in grpc.StatusCode} == {
        each.name: each.value for each in Status
    }
    assert status_of(too_busy("busy")) == (Status.UNAVAILABLE, "busy")


def _errors(of: type[errors.QueueberError]) -> list[type[errors.QueueberError]]:
    return [of, *(found for each in of.__subclasses__() for found in _errors(each))]


def test_the_generated_code_is_current() -> None:
    checked = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_grpc.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout) == (0, "")
