"""Upgrade a store to the format of today: make a new store, check it, and swap the two.

The old store is only read, and is kept when the new one is in its place. A kill at any point leaves
a store that the next upgrade starts over with, or whose swap it finishes (`swap.py`).
"""

import contextlib
import fcntl
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from queueber.db.families import Family
from queueber.db.records.queues import decode_counters
from queueber.db.recovery.opening import check_data_dir, stored_format
from queueber.db.store.contract import Store
from queueber.db.store.format import FORMAT, UPGRADED_FROM, check_format
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade import from_4_to_5
from queueber.db.upgrade.stores import NewStore, OldStore, Work
from queueber.db.upgrade.swap import (
    REPORT,
    UNFINISHED,
    begin_swap,
    finish_swap,
    is_interrupted,
    kept_folder,
)
from queueber.errors import DataDirLocked, StorageCorrupt

Convert = Callable[[OldStore, NewStore, Work], None]


class Step(NamedTuple):
    """From one format to the next."""

    families: tuple[str, ...]
    """Those of the format that it writes."""
    convert: Convert


STEPS = {4: Step(from_4_to_5.FAMILIES, from_4_to_5.convert)}
"""By the number of the format that a step reads."""

_VIOLATIONS_SHOWN = 3


class UpgradeRefused(StorageCorrupt):
    """The store cannot be upgraded as it is; nothing was changed."""


class Upgraded(NamedTuple):
    report: list[str]
    """What the user has to know, a sentence each; the last says what the store holds."""
    kept: Path
    """Where the old store is."""


def upgrade(data: Path, work: Work, check: Callable[[Store], list[str]]) -> Upgraded | None:
    """Upgrade the store in `data`; None if it has the format of today.

    `check` returns the rules that a store breaks: the new store must break none.
    """
    if not is_interrupted(data):
        check_data_dir(data)
        if not (data / "CURRENT").is_file():
            raise UpgradeRefused(f"there is no store in {data}; nothing was created")
    with _locked(data):
        if (swapped := finish_swap(data)) is not None:
            _clean_up(data)
            return Upgraded(swapped[1], swapped[0])
        number = _format_of(data)
        if number == FORMAT:
            _clean_up(data)
            return None
        kept = kept_folder(data, number)
        if kept.exists():
            raise UpgradeRefused(
                f"{kept} exists, and may hold a store that an earlier upgrade kept; nothing was "
                "changed: move or delete it first"
            )
        _clean_up(data)
        _check_free_space(data)
        try:
            new = _make(data, number, work)
            _check_and_report(new, number, work, check)
        except BaseException:
            _clean_up(data)
            raise
        begin_swap(data, new, number)
        finish_swap(data)
        _clean_up(data)
        return Upgraded(work.notes, kept)


def _make(data: Path, number: int, work: Work) -> Path:
    """The new store, made in as many steps as it takes."""
    source = data
    for at in range(number, FORMAT):
        step, target = STEPS[at], data / UNFINISHED / str(at + 1)
        with OldStore(source, at) as old, NewStore(target, step.families) as new:
            if old.torn:
                work.notes.append(old.torn)
            step.convert(old, new, work)
            new.finish()
        if source != data:
            shutil.rmtree(source)
        source = target
    return source


def _check_and_report(
    new: Path, number: int, work: Work, check: Callable[[Store], list[str]]
) -> None:
    with RocksStore(new) as store:
        if broken := check(store):
            shown = "; ".join(broken[:_VIOLATIONS_SHOWN])
            raise UpgradeRefused(
                f"the upgraded store would break {len(broken)} rules ({shown}); nothing was "
                "changed: verify the store with the version of Queueber that wrote it (format "
                f"{number}); if it is sound, please report this bug"
            )
        counted = [decode_counters(v) for _, v in store.walk(Family.COUNTERS, b"", b"\xff" * 8)]
        items = sum([each.items for each in counted])
    work.notes.append(
        f"the store has format {FORMAT} now: queues: {len(counted):,}, items: {items:,}"
    )
    (new / REPORT).write_text("".join([f"{note}\n" for note in work.notes]))


def _format_of(data: Path) -> int:
    found = stored_format(data)
    if found is None:
        raise UpgradeRefused(
            f"the store in {data} has no format number: it was not used yet, or is damaged; "
            "nothing was changed"
        )
    number = int.from_bytes(found)
    if not UPGRADED_FROM <= number < FORMAT:
        check_format(found, is_empty=False)
    return number


def _check_free_space(data: Path) -> None:
    """The new store takes about as much as the old one, or less."""
    needed = sum([file.stat().st_size for file in data.iterdir() if file.is_file()])
    free = shutil.disk_usage(data).free
    if free < needed:
        raise UpgradeRefused(
            f"the disk of {data} has {free:,} bytes left, and the new store may need {needed:,}, "
            "as much as the old one, which is kept; nothing was changed: make room first"
        )


def _clean_up(data: Path) -> None:
    """Delete what this upgrade, or one that was killed, made on the way."""
    shutil.rmtree(data / UNFINISHED, ignore_errors=True)


@contextlib.contextmanager
def _locked(data: Path) -> Iterator[None]:
    """Keep servers and other upgrades from the directory, with the lock that RocksDB uses."""
    with (data / "LOCK").open("ab") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataDirLocked(
                f"the data directory {data} is in use by a running server; stop it first"
            ) from error
        yield
