"""Errors cross the wire as text and come back as the class they were."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber import errors
from queueber.errors import (
    WIRE_ERRORS,
    DataDirLocked,
    Internal,
    InvariantViolation,
    OutcomeUnknown,
    OutOfRange,
    QueueberError,
    StorageCorrupt,
    StorageFailed,
    Unavailable,
    from_wire,
    invariant,
)

PREFIXES = ["", "remote exception: ", "message = ", "remote exception: message = "]
CODES = [
    "ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "INTERNAL", "INVALID_ARGUMENT",
    "LEASE_EXPIRED", "NOT_FOUND", "OUT_OF_RANGE", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "UNAVAILABLE",
]  # fmt: skip
"""Written out once more: a code that clients know must not change by a slip."""


ERRORS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, QueueberError) and each is not QueueberError
]


def all_subclasses(cls: type[QueueberError]) -> list[type[QueueberError]]:
    direct = cls.__subclasses__()
    return direct + [deeper for each in direct for deeper in all_subclasses(each)]


def test_wire_errors_are_the_codes_of_the_protocol() -> None:
    assert sorted(WIRE_ERRORS) == CODES
    assert all(error.code == code for code, error in WIRE_ERRORS.items())


def test_every_error_with_a_code_of_its_own_is_mapped() -> None:
    """Also one that another module made for itself."""
    with_code = {error for error in all_subclasses(QueueberError) if "code" in vars(error)}

    # Only a client can say that it does not know; no server sends it.
    assert with_code - {OutcomeUnknown} == set(WIRE_ERRORS.values())


def test_every_error_without_a_code_of_its_own_is_internal_to_a_caller() -> None:
    without = {error for error in ERRORS if "code" not in vars(error)}

    assert without == {DataDirLocked, StorageCorrupt, StorageFailed}
    assert {error.code for error in without} == {"INTERNAL"}


def test_only_unavailable_may_be_sent_again() -> None:
    assert [error for error in ERRORS if error.retryable] == [Unavailable]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("code", CODES)
def test_from_wire_of_each_code_is_its_class(code: str, prefix: str) -> None:
    error = from_wire(f"{prefix}{code}: name: 'a b' is no name; the limit is 128")

    assert type(error) is WIRE_ERRORS[code]
    assert str(error) == "name: 'a b' is no name; the limit is 128"


@given(
    code=st.sampled_from(CODES),
    prefix=st.sampled_from(PREFIXES),
    text=st.text().map(str.strip),
)
def test_from_wire_gives_back_any_text(code: str, prefix: str, text: str) -> None:
    error = from_wire(f"{prefix}{code}: {text}\n")

    assert type(error) is WIRE_ERRORS[code]
    assert str(error) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Premature EOF",
        "Method not implemented.",
        "BROKEN_PIPE: the pipe is broken",
        "unavailable: in small letters",
        "see UNAVAILABLE: not at the beginning",
        "remote exception: kj/async-io.c++:42: failed: expected x",
        "OUTCOME_UNKNOWN: a server cannot say this",
    ],
)
def test_from_wire_of_foreign_text_is_internal_and_keeps_it(text: str) -> None:
    error = from_wire(f"{text}\n")

    assert type(error) is Internal
    assert str(error) == text


@given(text=st.text())
def test_from_wire_of_any_text_is_an_error_of_ours(text: str) -> None:
    assert isinstance(from_wire(text), QueueberError)


@pytest.mark.parametrize("error", ERRORS)
def test_errors_survive_pickling(error: type[QueueberError]) -> None:
    """As they must when a worker in another process hands one back."""
    again = pickle.loads(pickle.dumps(error("what happened")))

    assert type(again) is error
    assert str(again) == "what happened"


def test_invariant_that_holds_says_nothing() -> None:
    invariant(True, "I1", item="a")
    invariant(b"x", "I1")


@pytest.mark.parametrize("condition", [False, None, 0, b"", []])
def test_invariant_that_is_broken_names_rule_and_facts(condition: object) -> None:
    with pytest.raises(InvariantViolation, match=r"^I4 is broken: queue='q', held=3$"):
        invariant(condition, "I4", queue="q", held=3)


def test_invariant_violation_is_no_error_that_a_handler_answers() -> None:
    assert not issubclass(InvariantViolation, QueueberError)


def test_numbers_of_an_error_travel_with_its_text() -> None:
    error = OutOfRange("offset is 9; there are messages from 3 up to 7", first=3, next=7)

    assert str(error) == "offset is 9; there are messages from 3 up to 7 [first=3 next=7]"
    assert error.sentence == "offset is 9; there are messages from 3 up to 7"
    again = from_wire(f"OUT_OF_RANGE: {error}")
    assert (type(again), again.numbers) == (OutOfRange, {"first": 3, "next": 7})


@pytest.mark.parametrize("text", ["", "a list [1, 2]", "[a=1] in front", "half [a=1", "[a=-1]"])
def test_a_text_without_numbers_has_none(text: str) -> None:
    assert Internal(text).numbers == {}
