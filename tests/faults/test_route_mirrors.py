"""A topic of some changes against one of all: what the check finds."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any
from zlib import crc32

import pytest

from faults.routes.mirrors import FoundMessage, Term, Way, check_mirror

_A, _B = "a" * 32, "b" * 32


def _told(
    offset: int, sequence: int, change: str, item: str, payload: object, **own: str
) -> FoundMessage:
    """An event of the truth, or with `kind` one of the topic beside it."""
    ons = {"added": "insert", "released": "update", "removed": "delete"}
    said = {"queue": "q", "op": ons[change], "change": change, "id": item, "attempt": "1"}
    kind = own.pop("kind", "diff")
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return FoundMessage(0, offset, sequence, item, body, {**said, "payload": kind}, own)


def _added(contents: str, **attributes: str) -> dict[str, object]:
    return {"state": [None, "ready"], "contents": [None, contents]} | (
        {"attributes": [None, attributes]} if attributes else {}
    )


TRUTH = [
    _told(0, 11, "added", _A, _added("1", x="y")),
    _told(1, 21, "added", _B, _added("2")),
    _told(2, 31, "released", _A, {"state": ["leased", "ready"]}),
    _told(3, 41, "released", _A, {"state": ["leased", "ready"]}),
    _told(4, 51, "removed", _A, {"state": ["leased", "gone"]}),
]
FULL = [
    _told(0, 12, "added", _A, b"1", kind="full", x="y"),
    _told(1, 22, "added", _B, b"2", kind="full"),
]
UPDATES = [
    _told(2, 32, "released", _A, {"id": _A, "key": None}, kind="key"),
    _told(3, 42, "released", _A, {"id": _A, "key": None}, kind="key"),
]
MIRROR = [*FULL, *UPDATES]
TERMS = [Term("q", "insert", Way("full")), Term("q", "update", Way("key"))]


def _check(found: Sequence[FoundMessage], terms: Sequence[Term] = TERMS) -> list[str]:
    return check_mirror("t", TRUTH, found, 1, terms)


def _with(at: int, **changed: Any) -> list[FoundMessage]:
    found = list(MIRROR)
    found[at] = found[at]._replace(**changed)
    return found


def test_a_topic_with_an_event_for_each_change_is_right() -> None:
    assert _check(MIRROR) == []


def test_what_was_asked_for_later_or_no_more_is_not_missed() -> None:
    later = [TERMS[0], Term("q", "update", Way("key"), began=25, sure_from=35)]
    assert _check(MIRROR, later) == []
    assert _check([*FULL, UPDATES[1]._replace(offset=2)], later) == []
    ended = [TERMS[0], Term("q", "update", Way("key"), sure_to=25, ended=inf)]
    assert _check(MIRROR, ended) == []
    assert _check(FULL, ended) == []


def test_what_was_trimmed_is_not_missed() -> None:
    assert _check(MIRROR[2:]) == []


def test_a_filter_and_partitions_are_those_of_the_way() -> None:
    way = Way("full", lambda change: change.born["contents"] == "2", lambda _: "other")
    terms = [Term("q", "insert", way)]
    partition = crc32(b"other") % 5
    right = FULL[1]._replace(offset=0, partition=partition)
    assert check_mirror("t", TRUTH, [right], 5, terms) == []
    assert "its filter leaves it out" in _check(FULL, terms)[0]
    wrong = right._replace(partition=partition + 1)
    assert "is in a partition of others" in check_mirror("t", TRUTH, [wrong], 5, terms)[0]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (MIRROR[:1] + MIRROR[2:], "'added' of item bbb"),
        (MIRROR[:-1], "is not told, as update was asked for"),
        ([*MIRROR, UPDATES[1]._replace(offset=4, sequence=43)], "is told twice"),
        (_with(1, sequence=43), "did not happen"),
        (_with(0, payload=b"2"), "has the payload full b'2'"),
        (_with(0, attributes={}), "has the payload full b'1'"),
        (_with(3, own=UPDATES[1].own | {"payload": "diff"}), "has the payload diff"),
        (_with(3, payload=b'{"id": "c", "key": null}'), "has the payload key"),
        (_with(1, key="other"), "has the key 'other'"),
        (_with(0, offset=1)[:1] + _with(1, offset=0)[1:], "which happened later"),
        ([*MIRROR, _told(4, 52, "removed", _A, b"", kind="key")], "nobody asked for it"),
    ],
)
def test_what_the_truth_contradicts_is_told(found: list[FoundMessage], said: str) -> None:
    wrong = _check(found)

    assert any(said in each for each in wrong), wrong


def test_attributes_that_do_not_fit_leave_the_key() -> None:
    many = {str(n): "" for n in range(27)}
    truth = [_told(0, 11, "added", _A, _added("1", **many))]
    short = _told(0, 12, "added", _A, {"id": _A, "key": None}, kind="key")
    long = _told(0, 12, "added", _A, b"1", kind="full", **many)

    assert check_mirror("t", truth, [short], 1, TERMS[:1]) == []
    assert check_mirror("t", truth, [long], 1, TERMS[:1]) != []


def test_terms_are_compared_with_the_sequence_of_the_truth() -> None:
    late = [TERMS[0], replace(TERMS[1], began=31, sure_from=31)]
    assert "nobody asked" in _check(MIRROR, late)[0]
    assert _check([*FULL, UPDATES[1]], late) == []
