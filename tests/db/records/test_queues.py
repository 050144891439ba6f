"""Queues and their counters: read as they were written, byte for byte what Cap'n Proto makes."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.keys import NEVER_MS, due_part
from queueber.db.records.queues import (
    Counters,
    decode_counters,
    decode_queue,
    encode_counters,
    encode_queue,
)
from queueber.model import QueueSettings
from queueber.schema import storage
from tests.support.entries import LOWEST_DUE

numbers = st.integers(0, (1 << 64) - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
floats = st.floats(0, 1000)
settings_of_any_kind = st.builds(
    QueueSettings,
    items_max=numbers,
    bytes_max=numbers,
    item_bytes_max=numbers,
    lease_ms=numbers,
    attempts_max=st.integers(0, (1 << 32) - 1),
    backoff_ms=st.lists(numbers, max_size=5).map(tuple),
    backoff_base_ms=numbers,
    backoff_factor=floats,
    backoff_cap_ms=numbers,
    backoff_jitter=floats,
    dedup_window_ms=numbers,
    result_age_ms=numbers,
    result_bytes_max=numbers,
    concurrency_max=st.integers(0, (1 << 32) - 1),
    rate_items=st.integers(0, (1 << 32) - 1),
    rate_ms=numbers,
    batches_max=numbers,
    batch_keep_ms=numbers,
    cap_by=texts,
    cap_by_concurrency_max=st.integers(0, (1 << 32) - 1),
    cap_by_rate_items=st.integers(0, (1 << 32) - 1),
    cap_by_rate_ms=numbers,
    dead_age_ms=numbers,
)


@given(name=texts, created_at_ms=numbers, settings=settings_of_any_kind, paused_until_ms=numbers)
def test_queue_round_trips(
    name: str, created_at_ms: int, settings: QueueSettings, paused_until_ms: int
) -> None:
    encoded = encode_queue(name, created_at_ms, settings, paused_until_ms)

    assert decode_queue(encoded) == (name, created_at_ms, settings, paused_until_ms)


def test_queue_with_nothing_set_has_no_name_and_zero_everywhere() -> None:
    encoded = storage.QueueRecord.new_message().to_bytes()

    nothing = QueueSettings(
        lease_ms=0,
        attempts_max=0,
        backoff_base_ms=0,
        backoff_factor=0.0,
        backoff_cap_ms=0,
        backoff_jitter=0.0,
        dedup_window_ms=0,
        result_age_ms=0,
    )
    assert decode_queue(encoded) == ("", 0, nothing, 0)


ids = st.binary(min_size=16, max_size=16)
levels = st.dictionaries(
    st.integers(0, 9), st.tuples(numbers, st.binary(min_size=24, max_size=24)), max_size=10
)
counters_of_any_kind = st.builds(
    Counters, *[numbers] * (len(fields(Counters)) - 2), last_id=ids, levels=levels
)

DUE_FIELDS = {"lease_due_ms", "delayed_due_ms", "forget_due_ms", "cap_due_ms", "expiry_due_ms"}


def packed_levels(counters: Counters) -> bytes:
    return b"".join(
        bytes([level]) + count.to_bytes(8) + low
        for level, (count, low) in sorted(counters.levels.items())
    )


def built_counters(counters: Counters) -> bytes:
    message = storage.QueueCounters.new_message()
    for field in fields(counters):
        first, *others = field.name.split("_")
        name = first + "".join(word.capitalize() for word in others)
        value = getattr(counters, field.name)
        setattr(message, name, packed_levels(counters) if name == "levels" else value)
    encoded: bytes = message.to_bytes()
    return encoded


def test_every_field_is_stored() -> None:
    assert len(fields(Counters)) == len(list(storage.QueueCounters.schema.node.struct.fields))


@given(counters=counters_of_any_kind)
def test_counters_are_encoded_as_capnp_does(counters: Counters) -> None:
    assert encode_counters(counters) == built_counters(counters)


@given(counters=counters_of_any_kind)
def test_counters_round_trip(counters: Counters) -> None:
    assert decode_counters(encode_counters(counters)) == counters
    assert decode_counters(built_counters(counters)) == counters


@given(counters=counters_of_any_kind)
def test_counters_copy_is_equal_and_apart(counters: Counters) -> None:
    copied = counters.copy()
    assert copied == counters

    names = [each.name for each in fields(Counters)]
    copied.levels[10] = (1, LOWEST_DUE)
    for name in names:
        value = getattr(counters, name)
        if name != "levels":
            setattr(copied, name, value + (b"\1" if isinstance(value, bytes) else 1))

    assert all(getattr(copied, name) != getattr(counters, name) for name in names)


@given(counters=counters_of_any_kind)
def test_items_are_those_of_every_state(counters: Counters) -> None:
    states = (counters.ready, counters.delayed, counters.leased, counters.dead)

    assert counters.items == sum(states)


def test_counters_of_a_new_queue_are_zero_and_have_nothing_due() -> None:
    found = {field.name: getattr(Counters(), field.name) for field in fields(Counters)}

    assert found.pop("last_id") == bytes(16)
    assert found.pop("levels") == {}
    assert found == {name: NEVER_MS if name in DUE_FIELDS else 0 for name in found}


def test_counters_with_nothing_set_are_zero() -> None:
    decoded = decode_counters(storage.QueueCounters.new_message().to_bytes())

    nothing = Counters(last_id=b"")
    for name in DUE_FIELDS:
        setattr(nothing, name, 0)
    assert decoded == nothing


# --- golden bytes of format 2 ---------------------------------------------------------------------
# They never change; another format has others, beside these.

ID_1 = bytes.fromhex("018bcfe568007abc9234567890abcdef")
ID_2 = bytes.fromhex("018bcfe568007abc9234567890abcdf0")

GOLDEN_COUNTERS_WITHOUT_CAPS = """
    0000000028000000 000000001a000200 0100000000000000 0200000000000000 0300000000000000
    0400000000000000 0500000000000000 0600000000000000 0700000000000000 0800000000000000
    0900000000000000 0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000
    0e00000000000000 0f00000000000000 1000000000000000 1100000000000000 1200000000000000
    1300000000000000 1400000000000000 1500000000000000 1600000000000000 1700000000000000
    1800000000000000 1900000000000000 1a00000000000000 0500000082000000 0900000012020000
    018bcfe568007abc 9234567890abcdf0 0400000000000000 0300000000000000 0000000000000000
    0000000000000000 0009000000000000 00020000018bcfe5 6800018bcfe56800 7abc9234567890ab
    cdef000000000000
"""
# The same, of a queue with caps and callbacks.
GOLDEN_COUNTERS_WITH_CALLBACKS = """
    000000002e000000 0000000020000200 0100000000000000 0200000000000000 0300000000000000
    0400000000000000 0500000000000000 0600000000000000 0700000000000000 0800000000000000
    0900000000000000 0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000
    0e00000000000000 0f00000000000000 1000000000000000 1100000000000000 1200000000000000
    1300000000000000 1400000000000000 1500000000000000 1600000000000000 1700000000000000
    1800000000000000 1900000000000000 1a00000000000000 1b00000000000000
    1c00000000000000 1d00000000000000 1e00000000000000 1f00000000000000
    2000000000000000 0500000082000000 0900000012020000
    018bcfe568007abc 9234567890abcdf0 0400000000000000 0300000000000000 0000000000000000
    0000000000000000 0009000000000000 00020000018bcfe5 6800018bcfe56800 7abc9234567890ab
    cdef000000000000
"""
# The same, of one with rates by an attribute, items that expire or wait, and dead letters that are
# dropped.
GOLDEN_COUNTERS_WITH_NOTES = """
    0000000036000000 0000000028000200 0100000000000000 0200000000000000 0300000000000000
    0400000000000000 0500000000000000 0600000000000000 0700000000000000 0800000000000000
    0900000000000000 0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000
    0e00000000000000 0f00000000000000 1000000000000000 1100000000000000 1200000000000000
    1300000000000000 1400000000000000 1500000000000000 1600000000000000 1700000000000000
    1800000000000000 1900000000000000 1a00000000000000 1b00000000000000 1c00000000000000
    1d00000000000000 1e00000000000000 1f00000000000000 2000000000000000 2100000000000000
    2200000000000000 2300000000000000 2400000000000000 2500000000000000
    2600000000000000 2700000000000000 2800000000000000 0500000082000000
    0900000012020000 018bcfe568007abc 9234567890abcdf0
    0400000000000000 0300000000000000 0000000000000000 0000000000000000 0009000000000000
    00020000018bcfe5 6800018bcfe56800 7abc9234567890ab cdef000000000000
"""
# And of one that counts what expired.
GOLDEN_COUNTERS = """
    0000000037000000 0000000029000200 0100000000000000 0200000000000000 0300000000000000
    0400000000000000 0500000000000000 0600000000000000 0700000000000000 0800000000000000
    0900000000000000 0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000
    0e00000000000000 0f00000000000000 1000000000000000 1100000000000000 1200000000000000
    1300000000000000 1400000000000000 1500000000000000 1600000000000000 1700000000000000
    1800000000000000 1900000000000000 1a00000000000000 1b00000000000000 1c00000000000000
    1d00000000000000 1e00000000000000 1f00000000000000 2000000000000000 2100000000000000
    2200000000000000 2300000000000000 2400000000000000 2500000000000000
    2600000000000000 2700000000000000 2800000000000000 2900000000000000 0500000082000000
    0900000012020000 018bcfe568007abc 9234567890abcdf0
    0400000000000000 0300000000000000 0000000000000000 0000000000000000 0009000000000000
    00020000018bcfe5 6800018bcfe56800 7abc9234567890ab cdef000000000000
"""
COUNTERS = Counters(
    ready=1,
    delayed=2,
    leased=3,
    leases=4,
    contents_bytes=5,
    added_total=6,
    polled_total=7,
    removed_total=8,
    expired_total=9,
    extended_total=10,
    lease_due_ms=11,
    delayed_due_ms=12,
    dead=13,
    completed_total=14,
    failed_total=15,
    released_total=16,
    died_total=17,
    redriven_total=18,
    cancelled_total=19,
    duplicates_total=20,
    leases_total=21,
    forgets=22,
    forget_due_ms=23,
    batches=24,
    last_batch=25,
    quarantined=26,
    rate_full_at_us=27,
    slots=28,
    parked=29,
    caps_to_review=30,
    callbacks=31,
    callback_records=32,
    cap_dues=33,
    cap_due_ms=34,
    expiring=35,
    expiry_due_ms=36,
    waiting=37,
    waits_due=38,
    dead_dropped_total=39,
    last_note=40,
    unclaimed_total=41,
    last_id=ID_2,
    levels={9: (2, due_part(1_700_000_000_000, ID_1)), 4: (3, LOWEST_DUE)},
)


def test_counters_have_their_golden_bytes() -> None:
    assert encode_counters(COUNTERS) == bytes.fromhex(GOLDEN_COUNTERS)
    assert decode_counters(bytes.fromhex(GOLDEN_COUNTERS)) == COUNTERS
    with_notes = replace(COUNTERS, unclaimed_total=0)
    assert decode_counters(bytes.fromhex(GOLDEN_COUNTERS_WITH_NOTES)) == with_notes
    with_callbacks = replace(
        with_notes,
        cap_dues=0,
        cap_due_ms=0,
        expiring=0,
        expiry_due_ms=0,
        waiting=0,
        waits_due=0,
        dead_dropped_total=0,
        last_note=0,
    )
    assert decode_counters(bytes.fromhex(GOLDEN_COUNTERS_WITH_CALLBACKS)) == with_callbacks
    without = replace(
        with_callbacks,
        rate_full_at_us=0,
        slots=0,
        parked=0,
        caps_to_review=0,
        callbacks=0,
        callback_records=0,
    )
    assert decode_counters(bytes.fromhex(GOLDEN_COUNTERS_WITHOUT_CAPS)) == without
