"""`queueber verify`: check the store of a stopped server."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE, STORE, Failure
from queueber.cli.output.text import counted
from queueber.config import default_data_dir
from queueber.errors import DataDirLocked, QueueberError

_VIOLATIONS_MAX = 10_000
"""More than anybody reads; a store that is wrong everywhere must not fill the memory."""


data_dir_flag = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    envvar="QUEUEBER_DATA_DIR",
    show_envvar=True,
    help="The data directory of the server. [default: the user's data folder]",
)


@click.command()
@data_dir_flag
def verify(data_dir: Path | None) -> None:
    """Check the store of a stopped server for damage. Changes nothing.

    \b
    Example:
      queueber verify --data-dir /var/lib/queueber

    It reads every record of the log and every block of every file with its checksum, and then
    checks every entry against the rules of a queue, so a large store takes a while. It prints what
    cannot be read, and each rule that is broken with the name of the queue. Ends with 1 if it finds
    damage, and with 5 if the store cannot be opened. 'queueber repair' saves what can be read.
    """
    folder = data_dir if data_dir is not None else default_data_dir()
    if not (folder / "CURRENT").is_file() and not any(folder.glob("*.sst")):
        raise Failure(f"there is no store in {folder}; nothing was created", STORE)
    with locked(folder):
        found = _check(folder)
    for line in (*found.remarks, *found.unreadable, *found.violations):
        click.echo(line)
    if found.unreadable:
        places = counted(len(found.unreadable), "place")
        click.echo(f"{folder} is damaged: {places} cannot be read; the rules were not checked")
        raise Exit(NEGATIVE)
    if violations := found.violations:
        least = "at least " if len(violations) == _VIOLATIONS_MAX else ""
        click.echo(f"{folder} is damaged: {least}{counted(len(violations), 'violation')}")
        raise Exit(NEGATIVE)
    click.echo(f"{folder} is sound: {found.summary}")


class _Found(NamedTuple):
    remarks: list[str]
    unreadable: list[str]
    violations: list[str]
    summary: str


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep servers from opening the store. RocksDB itself takes no lock to read."""
    try:
        lock = (folder / "LOCK").open("rb")
    except FileNotFoundError:
        # A copy of a store may lack the file; then no server uses it.
        yield
        return
    except OSError as error:
        raise Failure(f"cannot use {error.filename}: {error.strerror}", STORE) from error
    with lock:
        try:
            # A shared lock needs no permission to write, and conflicts with that of a server.
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise DataDirLocked(
                f"the data directory {folder} is in use by a running server; stop it first"
            ) from error
        yield


def _check(folder: Path) -> _Found:
    """What is wrong, and what the store holds."""
    # Other commands do not need RocksDB.
    from queueber.db.families import Family
    from queueber.db.records.queues import decode_counters
    from queueber.db.recovery.opening import check_data_dir
    from queueber.db.recovery.salvage import find_gaps
    from queueber.db.store.rocks import RocksStore
    from queueber.engine.integrity.check_store import check_store

    check_data_dir(folder)
    try:
        with RocksStore(folder, read_only=True) as store:
            remarks = [store.torn] if store.torn else []
            if unreadable := [str(gap) for gap in find_gaps(store)]:
                return _Found(remarks, unreadable, [], "")
            violations = [str(each) for each in check_store(store, _VIOLATIONS_MAX)]
            if violations:
                return _Found(remarks, [], violations, "")
            kept = [decode_counters(v) for _, v in store.walk(Family.COUNTERS, b"", b"\xff" * 8)]
    except QueueberError:
        raise
    except Exception as error:
        # RocksDB found a damaged file, or a record cannot be decoded.
        reason = str(error).partition("\n")[0]
        raise Failure(f"the store in {folder} cannot be read: {reason}", STORE) from error
    items = sum(each.ready + each.delayed + each.leased + each.dead for each in kept)
    summary = f"{counted(len(kept), 'queue')}, {counted(items, 'item')}"
    return _Found(remarks, [], [], summary)
