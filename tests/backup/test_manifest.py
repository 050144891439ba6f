"""Manifests: read as they were written, and refused if a byte of them has changed."""

import contextlib
import json
from dataclasses import replace
from random import Random

import pytest

from queueber.backup.manifest import Manifest, StoredFile, decode, encode, name_of, sort_key
from queueber.errors import StorageCorrupt

MANIFEST = Manifest(
    name="2026-11-17T21-44-28Z",
    taken_at_ms=1794951868123,
    server="127.0.0.1:9090",
    server_version="0.1.0",
    format=5,
    queues=2,
    items=1000,
    topics=1,
    sent_bytes=20,
    files=[
        StoredFile("000009.sst", 20, "ab" * 32, "files/0011.sst"),
        StoredFile("CURRENT", 16, "cd" * 32, "backups/2026-11-17T21-44-28Z/CURRENT"),
    ],
)


def test_manifest_is_read_as_it_was_written() -> None:
    assert decode(encode(MANIFEST), "it") == MANIFEST
    assert MANIFEST.bytes == 36


def test_name_tells_the_time_and_names_sort_by_it() -> None:
    name = name_of(1794951868123)

    assert name == "2026-11-17T21-44-28Z"
    names = [name_of(1794951868123 + 1000 * n) for n in range(3)]
    others = [f"{name}-{n}" for n in range(2, 13)]
    assert sorted([*reversed(others), *names], key=sort_key) == [names[0], *others, *names[1:]]


@pytest.mark.parametrize("seed", range(20))
def test_changed_byte_of_a_manifest_is_found(seed: int) -> None:
    random = Random(seed)
    data = bytearray(encode(MANIFEST))
    at = random.randrange(len(data) - 1)
    data[at] ^= 1 << random.randrange(8)

    read: Manifest | None = None
    with contextlib.suppress(StorageCorrupt):
        read = decode(bytes(data), "it")
    assert read in (None, MANIFEST), "a changed white space does no harm"


@pytest.mark.parametrize(
    "file",
    [
        StoredFile("../evil", 1, "", "files/a.sst"),
        StoredFile("a/b", 1, "", "files/a.sst"),
        StoredFile("", 1, "", "files/a.sst"),
        StoredFile("a", 1, "", "files/../../etc/passwd"),
        StoredFile("a", 1, "", "/etc/passwd"),
        StoredFile("a", 1, "", "backups/../lock"),
    ],
)
def test_manifest_does_not_lead_out_of_its_repository(file: StoredFile) -> None:
    with pytest.raises(StorageCorrupt, match="it names the file"):
        decode(encode(replace(MANIFEST, files=[file])), "it")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"version": 1}', b"\xff"])
def test_something_else_is_no_manifest(data: bytes) -> None:
    with pytest.raises(StorageCorrupt, match=r"it is damaged: .*; choose another backup"):
        decode(data, "it")


def test_manifest_of_a_later_version_says_so() -> None:
    content = json.loads(encode(MANIFEST)) | {"version": 2}

    with pytest.raises(StorageCorrupt, match="a later version of Queueber"):
        decode(json.dumps(content).encode(), "it")
