"""Codecs of loads and their parts: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.limits import LOAD_FILES_MAX, LOAD_PARTS_MAX, LOADS_MAX, PRIORITY_MAX
from queueber.model import LoadInfo, LoadRef, LoadState, Part, PartRef, StagedFile
from queueber.wire.lists import Codec, read_list

_LOAD_REF = Codec(LoadRef)
read_load_ref, write_load_ref = _LOAD_REF.read, _LOAD_REF.write
_LOAD = Codec(LoadInfo, without=("ref", "state"))
_PART = Codec(Part, without=("ref", "files", "levels"))
_FILE = Codec(StagedFile, size="bytes")
_STATES = tuple(LoadState)
"""In the order of their numbers in the schema, which has the same words for them."""


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
    write_load_ref(target, load.ref)
    target.state = load.state.value
    _LOAD.write(target, load)


def read_load(source: Any) -> LoadInfo:
    return _LOAD.read(source, ref=read_load_ref(source), state=_STATES[source.state.raw])


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
    _PART.write(request, part)
    files = request.init("files", len(part.files))
    for at, file in enumerate(part.files):
        _FILE.write(files[at], file)


def read_part(request: Any) -> Part:
    files = read_list("files", request.files, LOAD_FILES_MAX)
    return _PART.read(
        request,
        ref=read_part_ref(request.part),
        files=[_FILE.read(file) for file in files],
        levels=read_list("levels", request.levels, PRIORITY_MAX + 1),
    )
