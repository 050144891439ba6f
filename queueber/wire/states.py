"""Codecs of outcomes, states and peeked items: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import PEEK_ITEMS_MAX
from queueber.model import FailOutcome, ItemInfo, ItemState
from queueber.wire.lists import read_attribute_list, read_list, write_attribute_list

_FAIL_OUTCOMES = (FailOutcome.REFUSED, FailOutcome.RETRIED, FailOutcome.DIED)
_FAIL_WORDS = dict(zip(_FAIL_OUTCOMES, ("refused", "retried", "died"), strict=True))
_STATES = (ItemState.READY, ItemState.DELAYED, ItemState.LEASED, ItemState.DEAD)
_STATE_WORDS = dict(zip(_STATES, ("ready", "delayed", "inProgress", "dead"), strict=True))


def write_fail_outcomes(response: Any, outcomes: Sequence[FailOutcome]) -> None:
    response.outcomes = [_FAIL_WORDS[outcome] for outcome in outcomes]


def read_fail_outcomes(response: Any) -> list[FailOutcome]:
    return [_FAIL_OUTCOMES[outcome.raw] for outcome in response.outcomes]


def read_state(state: Any) -> ItemState:
    """Read the number, because pycapnp has no name for a value that is not in the schema."""
    if state.raw >= len(_STATES):
        raise InvalidArgument(f"state: {state.raw} is none of {', '.join(_STATE_WORDS.values())}")
    return _STATES[state.raw]


def wire_state(state: ItemState) -> str:
    return _STATE_WORDS[state]


# --- peek -----------------------------------------------------------------------------------------

_PEEKED_FIELDS = {
    "id": "id",
    "contents": "contents",
    "addedAtMs": "added_at_ms",
    "key": "key",
    "batch": "batch",
    "priority": "priority",
    "attempts": "attempts",
    "groupMax": "group_max",
    "atMs": "at_ms",
    "lease": "lease_id",
    "reason": "reason",
    "lastError": "last_error",
}


def write_peeked(response: Any, items: Sequence[ItemInfo], next_after: bytes) -> None:
    response.next = next_after
    listed = response.init("items", len(items))
    for at, peeked in enumerate(items):
        target = listed[at]
        for wire_name, name in _PEEKED_FIELDS.items():
            if value := getattr(peeked, name):
                setattr(target, wire_name, value)
        write_attribute_list(target, "attributes", peeked.attributes)
        if peeked.attempt_times_ms:
            target.attemptTimesMs = list(peeked.attempt_times_ms)


def read_peeked(response: Any) -> tuple[list[ItemInfo], bytes]:
    items = []
    for source in read_list("items", response.items, PEEK_ITEMS_MAX):
        values = {name: getattr(source, wire_name) for wire_name, name in _PEEKED_FIELDS.items()}
        attributes = read_attribute_list(source.attributes)
        times_ms = list(source.attemptTimesMs)
        items.append(ItemInfo(**values, attributes=attributes, attempt_times_ms=times_ms))
    return items, response.next
