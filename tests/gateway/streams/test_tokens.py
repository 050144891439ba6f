"""Tokens of offsets: their order is that of the offsets, and only ours are taken."""

import pytest

from queueber.gateway.problems import Problem
from queueber.gateway.streams.tokens import Place, to_offset, to_place, token
from queueber.model import Position, Start


def test_a_token_has_the_order_of_its_numbers() -> None:
    places = [(1, 0), (1, 9), (1, 10), (2, 0), (10, 5)]

    tokens = [token(*each) for each in places]

    assert tokens == sorted(tokens)
    assert tokens[1] == b"0000000000000001_0000000000000009"


def test_a_token_names_the_place_that_it_was_made_of() -> None:
    assert to_place(token(7, 12).decode()) == Place(Position(Start.OFFSET, 12), 7)
    assert to_place("-1") == Place(Position(Start.EARLIEST))
    assert to_place("now") == Place(Position(Start.LATEST))
    assert to_place("now").is_now


@pytest.mark.parametrize(
    "text",
    ["", "0", "-2", "0,1", "a", "../x", "0000000000000001_000000000000000", "\x00", "0 1",
     "0000000000000001_00000000000000001", "0000000000000001-0000000000000001",
     "\u0660000000000000000_0000000000000000", "0000000000000000_0000000000000000\n"],
)  # fmt: skip
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(Problem) as refused:
        to_place(text)

    assert (refused.value.status, refused.value.code) == (400, "INVALID_ARGUMENT")


def test_words_are_no_offsets_of_a_fork() -> None:
    with pytest.raises(Problem, match="400") as refused:
        to_offset("stream-fork-offset", "now")

    assert refused.value.detail.startswith("stream-fork-offset: 'now' is no offset")


def test_a_place_of_a_stream_that_was_created_again_is_gone() -> None:
    place = to_place(token(7, 12).decode())

    place.check_origin(7)
    to_place("-1").check_origin(8)
    to_place(token(0, 12).decode()).check_origin(8)
    with pytest.raises(Problem) as refused:
        place.check_origin(8)
    assert refused.value.status == 410
