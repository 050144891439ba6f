"""Loads of a service, as an adapter brings them in."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from queueber.model import LoadInfo, LoadRef, PartRef, Rows
from tests.support.loading import built_part
from tests.support.service_rig import ServiceRig

LOAD = LoadRef("load")
PART = PartRef(0, "first")


_PADDING = bytes(7000)


def contents(count: int, start: int = 0) -> Rows:
    """So large that ten of them fill more than a block: a file grows with the next block."""
    return Rows([b"%06d" % n + _PADDING for n in range(start, start + count)])


async def begin(
    rig: ServiceRig, ref: LoadRef = LOAD, *, batch: str = "", timeout_ms: int = 0
) -> LoadInfo:
    return await rig.service.loads.begin_load(rig.queue, ref, batch=batch, timeout_ms=timeout_ms)


async def stage(
    rig: ServiceRig, load: LoadInfo, ref: PartRef, *rows: Rows, file_bytes: int | None = None
) -> PartRef:
    """Build, send and finish a part; with `file_bytes` its files are small and many."""
    plan = load if file_bytes is None else replace(load, file_bytes_max=file_bytes)
    part, files = built_part(plan, ref, *rows)
    for name, held in files.items():
        rig.service.loads.stage_file(rig.queue, load.ref, ref, name, 0, held)
    await rig.service.loads.finish_part(rig.queue, load.ref, part)
    return ref


async def staged(
    rig: ServiceRig, ref: LoadRef = LOAD, *, files: int = 1, rows: int = 10, batch: str = ""
) -> list[PartRef]:
    """A load with one part of so many files of items, with so many rows each."""
    load = await begin(rig, ref, batch=batch)
    each = [contents(rows, rows * n) for n in range(files)]
    return [await stage(rig, load, PART, *each, file_bytes=1)]


async def commit(rig: ServiceRig, parts: Sequence[PartRef], ref: LoadRef = LOAD) -> LoadInfo:
    return await rig.service.loads.commit_load(rig.queue, ref, parts)


def ready(rig: ServiceRig) -> int:
    return rig.service.queues.stats(rig.queue).ready


def directories(rig: ServiceRig) -> list[str]:
    """Of the stage."""
    path = rig.store.loads_path
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


def files_of(path: Path) -> dict[str, bytes]:
    """All that lies below a directory."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }
