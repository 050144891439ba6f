"""Patterns of paths: what they match, and what every match begins with."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.gateway.streams.paths import is_stream
from queueber.gateway.streams.subscriptions.patterns import (
    fixed_prefix,
    matches,
    samples,
    to_pattern,
)

segments = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5)
wanted = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=5)


def is_match(pattern: list[str], path: list[str]) -> bool:
    """As the protocol says it, word by word."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(is_match(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and is_match(pattern[1:], path[1:])


@given(wanted, segments)
def test_a_pattern_matches_as_the_protocol_says(pattern: list[str], path: list[str]) -> None:
    text, name = "/".join(pattern), "/".join(path)

    assert matches(text, name) is is_match(pattern, path)
    if matches(text, name):
        assert name.startswith(fixed_prefix(text))
    assert all(matches(text, each) for each in samples(text))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("/a/*/", "a/*"), ("**", "**"), ("", None), ("/", None), ("a*", None), ("a//b", None),
     ("a/***", None), ("a b", None), ("a/" * 32 + "b", None), ("x" * 256, None)],
)  # fmt: skip
def test_what_is_a_pattern(text: str, pattern: str | None) -> None:
    assert to_pattern(text) == pattern


def test_many_stars_take_no_time() -> None:
    pattern, path = "/".join(["**", "a"] * 16), "/".join(["a"] * 127 + ["b"])
    begun = time.process_time()

    assert not matches(pattern, path)

    assert time.process_time() - begun < 0.1


def test_what_is_kept_for_others_is_no_stream() -> None:
    paths = ["a", "a/b", "__ds/keys", "queue/a/results", "a b", "", "__dsx", "x" * 256]

    assert [path for path in paths if is_stream(path)] == ["a", "a/b", "__dsx"]
