"""Filters: where fields are, kinds that differ, texts that are refused, and the limits of work."""

import json
from contextlib import suppress
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.errors import InvalidArgument
from queueber.filters import Field, RecordView, Room, parse_fields, parse_filter
from queueber.limits import (
    FILTER_CHARS_MAX,
    FILTER_CONTENTS_BYTES_MAX,
    FILTER_DEPTH_MAX,
    FILTER_LIKE_CHARS_MAX,
)


def _view(
    contents: object = None, attributes: dict[str, str] | None = None, **item: object
) -> RecordView:
    return RecordView(item, attributes or {}, json.dumps(contents).encode())


def test_fields_are_those_of_the_item_its_attributes_and_its_json_contents() -> None:
    view = _view({"a": {"b": 1}, "item": 7}, {"region": "eu", "trace.id": "x"}, attempt=3)

    assert parse_filter("item.attempt = 3").matches(view)
    assert parse_filter("attributes.region = 'eu' AND attributes.trace.id = 'x'").matches(view)
    assert parse_filter("contents.a.b = 1 AND a.b = 1 AND item = 7").matches(view)
    assert not parse_filter("contents.a.b.c IS NOT NULL OR region IS NOT NULL").matches(view)


def test_names_in_double_quotes_may_have_any_characters_and_be_words_of_the_grammar() -> None:
    view = _view({"user id": 1, "select": {'a"b': 2}, "AND": 3}, {"trace-id": "t"})

    assert parse_filter('"user id" = 1 AND contents."AND" = 3').matches(view)
    assert parse_filter("""select."a""b" = 2 AND attributes."trace-id" = 't'""").matches(view)
    assert parse_filter("contents.and = 3 OR contents.AND = 3").matches(view)


@pytest.mark.parametrize(
    "condition",
    ["n = '1'", "n <> '1'", "NOT n = '1'", "t = 1", "t <> TRUE", "b = 1", "b <> 0", "l = l",
     "l <> 1", "n LIKE '1'", "n IN ('1')", "NOT n IN ('1')", "n NOT IN (2, '1')", "missing = NULL",
     "NOT missing = 1", "z = z", "n"],
)  # fmt: skip
def test_what_is_of_another_kind_or_missing_is_unknown_and_does_not_match(condition: str) -> None:
    view = _view({"n": 1, "t": "1", "b": True, "l": [1], "z": None})

    assert not parse_filter(condition).matches(view)


def test_lists_and_objects_are_there_and_truth_values_may_stand_alone() -> None:
    view = _view({"l": [1], "o": {}, "yes": True, "no": False})

    assert parse_filter("l IS NOT NULL AND o IS NOT NULL").matches(view)
    assert parse_filter("yes AND NOT no AND (no OR yes)").matches(view)


@pytest.mark.parametrize(
    "contents",
    [b"", b"\xff{}", b"{", b'{"a": NaN}', b"[" * 50_000, b'{"a": ' + b"1" * 5000 + b"}",
     b'{"a": 1}'.ljust(FILTER_CONTENTS_BYTES_MAX + 1)],
    ids=["empty", "no text", "cut off", "no number", "too deep", "too many digits", "too large"],
)  # fmt: skip
def test_contents_that_are_no_json_or_too_large_have_no_fields(contents: bytes) -> None:
    assert parse_filter("a IS NULL").matches(RecordView({}, {}, contents))
    assert not parse_filter("a = 1 OR a <> 1").matches(RecordView({}, {}, contents))


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "it is empty"), ("a =", "'a =' ends too early"), ("a = 1 AND", "ends too early"),
     ("a == 1", "character 4 is not expected: '= 1'"), ("a = 'x", "character 5 is not expected"),
     ("a = 1; DROP TABLE b", "character 6"), ("(a = 1", "ends too early"), ("1", "ends too early"),
     ("a.b. = 2", "character 6"), ("a = 1e999", "too large for a number"),
     ("a = " + "9" * 400, "too large for a number"),
     ("a LIKE 'x!' ESCAPE '!'", "ends with its escape character"),
     ("a LIKE 'x' ESCAPE '!!'", "give one character"), ("a IN ()", "character 7"),
     ("a LIKE '" + "x" * 201 + "'", "the limit is 200"),
     ("a = 1 " + " " * FILTER_CHARS_MAX, f"the limit is {FILTER_CHARS_MAX}")],
)  # fmt: skip
def test_a_text_that_is_no_condition_is_refused_and_the_error_says_where(
    text: str, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=r"^where: |^where has ") as refused:
        parse_filter(text)
    assert said in str(refused.value)


def test_conditions_nested_too_deep_are_refused_and_parentheses_are_free() -> None:
    parse_filter("(" * 500 + "a = 1" + ")" * 500)
    parse_filter("NOT " * (FILTER_DEPTH_MAX - 1) + "a = 1")

    with pytest.raises(InvalidArgument, match=f"the limit is {FILTER_DEPTH_MAX}"):
        parse_filter("NOT " * FILTER_DEPTH_MAX + "a = 1")


def test_like_with_many_wildcards_costs_no_more_than_text_times_pattern() -> None:
    hard = parse_filter("a LIKE '" + "%a_" * 60 + "%b'")
    view = _view({"a": "a" * (FILTER_LIKE_CHARS_MAX - 1) + "c"})

    began = process_time()
    assert not hard.matches(view)
    assert process_time() - began < 0.5
    assert not parse_filter("a LIKE '%' OR a NOT LIKE '%'").matches(
        _view({"a": "x" * (FILTER_LIKE_CHARS_MAX + 1)})
    )


def test_fields_of_a_partition_key_are_a_list_with_or_without_parentheses() -> None:
    wanted = (Field(Room.CONTENTS, ("user", "id")), Field(Room.ATTRIBUTES, ("region",)))

    assert parse_fields("user.id, attributes.region") == wanted
    assert parse_fields("(contents.user.id, attributes.region)") == wanted
    assert [str(each) for each in wanted] == ["contents.user.id", "attributes.region"]
    with pytest.raises(InvalidArgument, match="partition_by has 9 fields; the limit is 8"):
        parse_fields(", ".join("abcdefghi"))
    with pytest.raises(InvalidArgument, match=r"^partition_by: character 3"):
        parse_fields("a = 1")


def test_a_filter_knows_which_fields_it_reads() -> None:
    filter_ = parse_filter("item.attempt > 1 AND (attributes.x = 'y' OR NOT b IN (1))")

    assert {str(each) for each in filter_.fields} == {"item.attempt", "attributes.x", "contents.b"}
    assert filter_.reads_contents
    assert not parse_filter("item.attempt > 1").reads_contents


@settings(deadline=None)
@given(st.text(max_size=60) | st.text("aAnNdDoOrR()'\"=<>.,%_ 10", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(InvalidArgument):
        parse_filter(text).matches(_view({"a": 1}))


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), _JSON), st.binary(max_size=30))
def test_any_contents_can_be_looked_at(contents: dict[str, Any], other: bytes) -> None:
    condition = parse_filter("a > b OR c LIKE '%x' OR a.b IN (1, 'x', TRUE) OR b BETWEEN a AND c")

    for each in (json.dumps(contents, allow_nan=True).encode(), other):
        assert condition.matches(RecordView({}, {}, each)) in (True, False)
