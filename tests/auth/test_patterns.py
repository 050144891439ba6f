"""Patterns of names: what matches, and that no pattern takes long."""

import re
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.auth.patterns import check_pattern, fixed_prefix, matches
from queueber.errors import InvalidArgument


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*", ""),
        ("*", "anything/at all"),
        ("ocr-*", "ocr-"),
        ("ocr-*", "ocr-1"),
        ("*-in", "ocr-in"),
        ("a*b*c", "abc"),
        ("a*b*c", "a-b-b-c"),
        ("a**b", "ab"),
        ("ocr", "ocr"),
        ("ü*", "übung"),
    ],
)
def test_a_star_stands_for_any_text(pattern: str, name: str) -> None:
    assert matches(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("ocr-*", "ocr"),
        ("ocr-*", "xocr-1"),
        ("ocr", "ocr-1"),
        ("", "a"),
        ("ab*ba", "aba"),
        ("a*b*c", "acb"),
        ("ocr.", "ocr1"),
        ("[a-z]*", "ocr"),
        ("OCR-*", "ocr-1"),
        ("?", "a"),
    ],
)
def test_nothing_else_stands_for_anything(pattern: str, name: str) -> None:
    assert not matches(pattern, name)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_patterns_match_what_an_expression_would(pattern: str, name: str) -> None:
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))

    assert matches(pattern, name) == bool(re.fullmatch(expression, name, re.DOTALL))


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_what_matches_begins_with_the_fixed_prefix(pattern: str, name: str) -> None:
    if matches(pattern, name):
        assert name.startswith(fixed_prefix(pattern))


def test_a_pattern_that_would_explode_as_an_expression_takes_no_time() -> None:
    began = perf_counter()

    assert not matches("*a" * 100 + "*b", "a" * 255)

    assert perf_counter() - began < 0.05


@pytest.mark.parametrize("wrong", ["", None, 7, ["a"], "a" * 257])
def test_what_is_no_pattern_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="queues: "):
        check_pattern(wrong, "queues")
