"""Loads, parts and origins as messages."""

from dataclasses import fields, replace
from typing import Any

import pytest

from queueber.errors import ResourceExhausted
from queueber.limits import LOAD_FILES_MAX, LOAD_PARTS_MAX
from queueber.model import (
    LoadInfo,
    LoadRef,
    LoadState,
    NewItems,
    Origin,
    Part,
    PartRef,
    StagedFile,
)
from queueber.schema import wire
from queueber.wire.items import read_add, write_add
from queueber.wire.loads import (
    read_load,
    read_load_ref,
    read_part,
    read_part_refs,
    write_load,
    write_load_ref,
    write_part,
    write_part_refs,
)
from tests.support.messages import sent

REF = LoadRef("nightly/é", 2**63)

LOAD = LoadInfo(
    ref=REF,
    state=LoadState.COMMITTING,
    batch="b",
    started_at_ms=1,
    expires_at_ms=2,
    rows=3,
    duplicates=4,
    queue_number=5,
    batch_number=6,
    id_head=b"123456789",
    dedup_window_ms=7,
    item_bytes_max=8,
    file_bytes_max=9,
    directory="/data/loads/12",
    token=b"\0token",
)

FILE = StagedFile("a.sst", "items", 2**40, 2**33, 2**32 - 1, b"\0first", b"\xfflast")
PART = Part(
    ref=PartRef(2**24 - 1, "attempt"),
    files=[FILE, StagedFile("b.sst", "claims", 1, 2, 3, b"4", b"5")],
    rows=2**32,
    contents_bytes=2**50,
    digest=bytes(range(16)),
    levels=list(range(10)),
    delayed=11,
    delayed_first_ms=12,
    keys=13,
)


def distinct(value: Any) -> bool:
    """Every field says something of its own: one that is left out, or mixed up, would show."""
    values = [getattr(value, field.name) for field in fields(value)]
    return all(values) and len({repr(each) for each in values}) == len(values)


@pytest.mark.parametrize("state", LoadState)
def test_load_is_read_as_it_was_written(state: LoadState) -> None:
    assert distinct(LOAD)
    load = replace(LOAD, state=state)
    message = wire.Load.new_message()

    write_load(message, load)

    assert read_load(sent(message)) == load


def test_part_is_read_as_it_was_written() -> None:
    assert distinct(PART)
    assert distinct(FILE)
    message = wire.FinishPartRequest.new_message()

    write_part(message, PART)
    write_load_ref(message.init("load"), REF)

    request = sent(message)
    assert read_part(request) == PART
    assert read_load_ref(request.load) == REF


def test_parts_of_a_commit_are_read_as_they_were_written() -> None:
    refs = [PartRef(0, "a"), PartRef(2**24 - 1, "é")]
    message = wire.CommitLoadRequest.new_message()

    write_part_refs(message, refs)

    assert read_part_refs(sent(message).parts) == refs


def test_too_many_parts_or_files_are_refused_before_they_are_read() -> None:
    commit = wire.CommitLoadRequest.new_message()
    commit.init("parts", LOAD_PARTS_MAX + 1)
    finish = wire.FinishPartRequest.new_message()
    finish.init("files", LOAD_FILES_MAX + 1)

    with pytest.raises(
        ResourceExhausted, match=rf"parts: .*{LOAD_PARTS_MAX + 1}.*{LOAD_PARTS_MAX}"
    ):
        read_part_refs(commit.parts)
    with pytest.raises(
        ResourceExhausted, match=rf"files: .*{LOAD_FILES_MAX + 1}.*{LOAD_FILES_MAX}"
    ):
        read_part(finish)


def test_origin_of_an_add_is_read_as_it_was_written() -> None:
    message = wire.AddRequest.new_message()

    write_add(message, NewItems([b"x"], origin=Origin(REF, 2**24 - 1, 2**32 - 1)))

    assert read_add(sent(message)).origin == Origin(REF, 2**24 - 1, 2**32 - 1)


def test_add_without_an_origin_has_none() -> None:
    message = wire.AddRequest.new_message()

    write_add(message, NewItems([b"x"]))

    assert read_add(sent(message)).origin is None
