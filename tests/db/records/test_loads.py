"""Records of loads: golden bytes, round trips, and keys in the order in which they are read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.keys import text_digest
from queueber.db.records.loads import (
    LOAD_KEY_BYTES,
    LOADS_END,
    PART_KEY_BYTES,
    Dropped,
    LoadedRecord,
    LoadRecord,
    decode_load,
    decode_loaded,
    decode_part,
    encode_load,
    encode_loaded,
    encode_part,
    is_load_key,
    load_digest,
    load_key,
    loaded_digest,
    loaded_key,
    part_directory,
    part_key,
    parts_end,
)
from queueber.db.records.remembered import encode_key_entry
from queueber.limits import LOAD_DUPLICATES_MAX, LOAD_PARTS_MAX, PARTITIONS_MAX
from queueber.model import LoadRef, Part, PartRef, StagedFile

NOW_MS = 1_700_000_000_000
ID_HEAD = bytes.fromhex("018bcfe568008abc92")
ID_1 = ID_HEAD + bytes.fromhex("00000100000002")

LOAD = LoadRecord(
    ref=LoadRef("nä", 3),
    batch=4,
    started_at_ms=NOW_MS,
    seen_at_ms=NOW_MS + 1,
    timeout_ms=5,
    forget_at_ms=NOW_MS + 6,
    id_head=ID_HEAD,
    dedup_window_ms=7,
    token=b"t" * 16,
    rows=8,
    is_committing=True,
    parts=[b"p1", b"p22"],
    dropped=[Dropped(ID_1, b"d" * 16, encode_key_entry(ID_1, 9))],
)
LOADED = LoadedRecord(LoadRef("nä", 3), 4, NOW_MS, NOW_MS + 1, NOW_MS + 2, rows=5, duplicates=6)
FILE = StagedFile("000001-items.sst", "items", 7, 8, 0xDEADBEEF, b"first", b"last")
PART = Part(
    ref=PartRef(1, "ä"),
    files=[FILE],
    rows=2,
    contents_bytes=3,
    digest=b"g" * 16,
    levels=[0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    delayed=1,
    delayed_first_ms=NOW_MS + 1,
    keys=1,
)

# --- golden bytes of format 3 ---------------------------------------------------------------------

GOLDEN_LOAD = """
    000000001e000000 0000000008000500 0300000000000000 0100000004000000 0068e5cf8b010000
    0168e5cf8b010000 0500000000000000 0668e5cf8b010000 0700000000000000 0800000000000000
    1100000022000000 110000004a000000 1500000082000000 1900000016000000 25000000c2010000
    6ec3a40000000000 018bcfe568008abc 9200000000000000 7474747474747474 7474747474747474
    0500000012000000 050000001a000000 7031000000000000 7032320000000000 018bcfe568008abc
    9200000100000002 6464646464646464 6464646464646464 018bcfe568008abc 9200000100000002
    0000000000000009
"""
GOLDEN_LOADED = """
    000000000a000000 0000000007000100 0300000000000000 0400000000000000 0068e5cf8b010000
    0168e5cf8b010000 0268e5cf8b010000 0500000000000000 0600000000000000 0100000022000000
    6ec3a40000000000
"""
GOLDEN_PART = """
    0000000026000000 0000000006000400 0100000000000000 0200000000000000 0300000000000000
    0100000000000000 0168e5cf8b010000 0100000000000000 0d0000001a000000 0d0000003f000000
    4100000082000000 4500000055000000 c3a4000000000000 0400000003000400 0700000000000000
    0800000000000000 efbeadde00000000 0d0000008a000000 1500000032000000 150000002a000000
    1500000022000000 3030303030312d69 74656d732e737374 0000000000000000 6974656d73000000
    6669727374000000 6c61737400000000 6767676767676767 6767676767676767 0000000000000000
    0000000000000000 0000000000000000 0000000000000000 0100000000000000 0000000000000000
    0000000000000000 0000000000000000 0000000000000000 0000000000000000
"""


def test_load_has_its_golden_bytes() -> None:
    assert encode_load(LOAD) == bytes.fromhex(GOLDEN_LOAD)
    assert decode_load(bytes.fromhex(GOLDEN_LOAD)) == LOAD


def test_loaded_has_its_golden_bytes() -> None:
    assert encode_loaded(LOADED) == bytes.fromhex(GOLDEN_LOADED)
    assert decode_loaded(bytes.fromhex(GOLDEN_LOADED)) == LOADED


def test_part_has_its_golden_bytes() -> None:
    assert encode_part(PART) == bytes.fromhex(GOLDEN_PART)
    assert decode_part(bytes.fromhex(GOLDEN_PART)) == PART


def test_keys_have_their_golden_bytes() -> None:
    digest = bytes(range(16))

    assert load_key(digest).hex() == "00000102030405060708090a0b0c0d0e0f"
    assert loaded_key(digest).hex() == "01000102030405060708090a0b0c0d0e0f"
    assert part_key(digest, PartRef(0x010203, "")).hex() == (
        "00000102030405060708090a0b0c0d0e0f" + "010203" + "cae66941d9efbd404e4d88758ea67670"
    )
    assert load_digest("a").hex() == "99454163e939b07fd33555960a92a60a"
    assert loaded_digest("a").hex() == "98bdbde209a37c833c3fcc65d1b6c588"


# --- round trips ----------------------------------------------------------------------------------

numbers = st.integers(0, (1 << 64) - 1)
digests = st.binary(min_size=16, max_size=16)
refs = st.builds(LoadRef, st.text(max_size=50), numbers)
part_refs = st.builds(PartRef, st.integers(0, PARTITIONS_MAX - 1), st.text(max_size=50))


@given(
    load=st.builds(
        LoadRecord,
        ref=refs,
        batch=st.integers(0, (1 << 32) - 1),
        started_at_ms=numbers,
        seen_at_ms=numbers,
        timeout_ms=numbers,
        forget_at_ms=numbers,
        id_head=st.binary(min_size=9, max_size=9),
        dedup_window_ms=numbers,
        token=st.binary(max_size=32),
        rows=numbers,
        is_committing=st.booleans(),
        parts=st.lists(st.binary(max_size=40), max_size=5),
        dropped=st.lists(
            st.builds(Dropped, digests, digests, st.binary(min_size=24, max_size=24)), max_size=5
        ),
    )
)
def test_load_round_trips(load: LoadRecord) -> None:
    assert decode_load(encode_load(load)) == load


@given(loaded=st.builds(LoadedRecord, refs, st.just(1), *[numbers] * 5))
def test_loaded_round_trips(loaded: LoadedRecord) -> None:
    assert decode_loaded(encode_loaded(loaded)) == loaded


@given(
    part=st.builds(
        Part,
        ref=part_refs,
        files=st.lists(
            st.builds(
                StagedFile,
                st.text(max_size=20),
                st.text(max_size=20),
                numbers,
                numbers,
                st.integers(0, (1 << 32) - 1),
                st.binary(max_size=40),
                st.binary(max_size=40),
            ),
            max_size=4,
        ),
        rows=numbers,
        contents_bytes=numbers,
        digest=digests,
        levels=st.lists(numbers, max_size=12),
        delayed=numbers,
        delayed_first_ms=numbers,
        keys=numbers,
    )
)
def test_part_round_trips(part: Part) -> None:
    assert decode_part(encode_part(part)) == part


def test_largest_intent_round_trips() -> None:
    """More words than a reader of Cap'n Proto goes through unless it is told to."""
    dropped = [Dropped(n.to_bytes(16), bytes(16), bytes(24)) for n in range(LOAD_DUPLICATES_MAX)]
    parts = [n.to_bytes(PART_KEY_BYTES) for n in range(LOAD_PARTS_MAX)]
    load = replace(LOAD, parts=parts, dropped=dropped)

    assert decode_load(encode_load(load)) == load


def test_part_of_many_files_round_trips() -> None:
    part = replace(PART, files=[replace(FILE, name=f"{n}.sst") for n in range(20_000)])

    assert decode_part(encode_part(part)) == part


# --- keys -----------------------------------------------------------------------------------------


@given(digest=digests, ref=part_refs)
def test_keys_of_a_load_and_its_parts_are_one_range_of_those_under_way(
    digest: bytes, ref: PartRef
) -> None:
    key, part = load_key(digest), part_key(digest, ref)

    assert key < part < parts_end(digest) < LOADS_END <= loaded_key(bytes(16))
    assert (len(key), len(part)) == (LOAD_KEY_BYTES, PART_KEY_BYTES)
    assert is_load_key(key)
    assert not is_load_key(part)
    assert not is_load_key(loaded_key(digest))


@given(first=digests, second=digests, ref=part_refs)
def test_parts_of_one_load_are_never_in_the_range_of_another(
    first: bytes, second: bytes, ref: PartRef
) -> None:
    is_in_range = load_key(second) <= part_key(first, ref) < parts_end(second)

    assert is_in_range == (first == second)


@given(one=part_refs, other=part_refs)
def test_attempts_have_keys_and_directories_of_their_own(one: PartRef, other: PartRef) -> None:
    digest = load_digest("a")

    assert (part_key(digest, one) == part_key(digest, other)) == (one == other)
    assert (part_directory(one) == part_directory(other)) == (one == other)


@pytest.mark.parametrize("attempt", ["../../x", "/etc", "a b", "ü" * 200, ""])
def test_directory_of_a_part_is_a_plain_name_whatever_the_attempt_is_called(attempt: str) -> None:
    assert part_directory(PartRef(7, attempt)) == f"7-{text_digest(attempt).hex()}"


@given(name=st.text(max_size=50))
def test_a_name_is_another_thing_under_way_committed_and_as_a_key(name: str) -> None:
    """They meet in the family `forget`."""
    digests = {load_digest(name), loaded_digest(name), text_digest(name)}

    assert len(digests) == 3


def test_directory_of_a_load_tells_its_ids() -> None:
    assert LOAD.directory == "018bcfe568008abc92"
