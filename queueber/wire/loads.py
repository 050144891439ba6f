"""Codecs of loads and their parts: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.limits import LOAD_FILES_MAX, LOAD_PARTS_MAX, LOADS_MAX, PRIORITY_MAX
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef, StagedFile
from queueber.wire.lists import read_list

_STATES = (LoadState.STAGING, LoadState.COMMITTING, LoadState.COMMITTED)
_STATE_WORDS = dict(zip(_STATES, ("staging", "committing", "committed"), strict=True))

_LOAD_FIELDS = {
    "batch": "batch",
    "startedAtMs": "started_at_ms",
    "expiresAtMs": "expires_at_ms",
    "rows": "rows",
    "duplicates": "duplicates",
    "queueNumber": "queue_number",
    "batchNumber": "batch_number",
    "idHead": "id_head",
    "dedupWindowMs": "dedup_window_ms",
    "itemBytesMax": "item_bytes_max",
    "fileBytesMax": "file_bytes_max",
    "directory": "directory",
    "token": "token",
}

_FILE_FIELDS = {
    "name": "name",
    "family": "family",
    "bytes": "size",
    "entries": "entries",
    "crc32": "crc32",
    "firstKey": "first_key",
    "lastKey": "last_key",
}

_PART_FIELDS = {
    "rows": "rows",
    "contentsBytes": "contents_bytes",
    "digest": "digest",
    "delayed": "delayed",
    "delayedFirstMs": "delayed_first_ms",
    "keys": "keys",
}


# --- names ----------------------------------------------------------------------------------------


def read_load_ref(source: Any) -> LoadRef:
    return LoadRef(source.name, source.epoch)


def write_load_ref(target: Any, ref: LoadRef) -> None:
    target.name = ref.name
    target.epoch = ref.epoch


def read_part_ref(source: Any) -> PartRef:
    return PartRef(source.partition, source.attempt)


def write_part_ref(target: Any, ref: PartRef) -> None:
    target.partition = ref.partition
    target.attempt = ref.attempt


def read_part_refs(source: Any) -> list[PartRef]:
    return [read_part_ref(each) for each in read_list("parts", source, LOAD_PARTS_MAX)]


def write_part_refs(request: Any, refs: Sequence[PartRef]) -> None:
    listed = request.init("parts", len(refs))
    for at, ref in enumerate(refs):
        write_part_ref(listed[at], ref)


# --- loads ----------------------------------------------------------------------------------------


def write_load(target: Any, load: LoadInfo) -> None:
    target.name = load.ref.name
    target.epoch = load.ref.epoch
    target.state = _STATE_WORDS[load.state]
    for wire_name, name in _LOAD_FIELDS.items():
        setattr(target, wire_name, getattr(load, name))


def read_load(source: Any) -> LoadInfo:
    return LoadInfo(
        ref=LoadRef(source.name, source.epoch),
        state=_STATES[source.state.raw],
        **{name: getattr(source, wire_name) for wire_name, name in _LOAD_FIELDS.items()},
    )


def write_loads(results: Any, loads: Sequence[LoadInfo]) -> None:
    listed = results.init("loads", len(loads))
    for at, load in enumerate(loads):
        write_load(listed[at], load)


def read_loads(results: Any) -> list[LoadInfo]:
    return [read_load(each) for each in read_list("loads", results.loads, LOADS_MAX)]


# --- parts ----------------------------------------------------------------------------------------


def write_part(request: Any, part: Part) -> None:
    write_part_ref(request.init("part"), part.ref)
    request.levels = list(part.levels)
    for wire_name, name in _PART_FIELDS.items():
        setattr(request, wire_name, getattr(part, name))
    files = request.init("files", len(part.files))
    for at, file in enumerate(part.files):
        for wire_name, name in _FILE_FIELDS.items():
            setattr(files[at], wire_name, getattr(file, name))


def read_part(request: Any) -> Part:
    return Part(
        ref=read_part_ref(request.part),
        files=[_read_file(file) for file in read_list("files", request.files, LOAD_FILES_MAX)],
        levels=read_list("levels", request.levels, PRIORITY_MAX + 1),
        **{name: getattr(request, wire_name) for wire_name, name in _PART_FIELDS.items()},
    )


def _read_file(source: Any) -> StagedFile:
    return StagedFile(**{name: getattr(source, wire) for wire, name in _FILE_FIELDS.items()})
