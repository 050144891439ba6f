"""`queueber verify` and `repair`: check the store of a stopped server, save what can be read."""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE, STORE, USAGE, Failure
from queueber.cli.output import counted, echo_json
from queueber.config import default_data_dir
from queueber.errors import DataDirLocked, QueueberError, StorageCorrupt

_VIOLATIONS_MAX = 10_000
"""More than anybody reads; a store that is wrong everywhere must not fill the memory."""

_UNFINISHED = "repair-unfinished"

data_dir_flag = click.option(
    "--data-dir",
    "folder",
    type=click.Path(path_type=Path),
    default=default_data_dir,
    envvar="QUEUEBER_DATA_DIR",
    show_envvar=True,
    help="The data directory of the server. [default: the user's data folder]",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of a whole store found."""

    remarks: list[str]
    damage: list[str]
    """Each place that cannot be read, or each rule that is broken, in a line."""
    summary: str
    """What the damage comes to, or what a sound store holds."""
    queues: int = 0
    items: int = 0
    topics: int = 0
    """These three of a sound store."""


@click.command()
@data_dir_flag
@click.option("--json", "use_json", is_flag=True, help="Print JSON, one object.")
def verify(folder: Path, use_json: bool) -> None:
    """Check the store of a stopped server for damage. Changes nothing.

    \b
    Examples:
      queueber verify --data-dir /var/lib/queueber
      queueber verify --json | jq .sound

    It reads every record of the log and every block of every file with its checksum, and then
    checks every entry against the rules of a queue, so a large store takes a while. It prints what
    cannot be read, and each rule that is broken with the name of the queue. Ends with 1 if it finds
    damage, and with 5 if the store cannot be opened. 'queueber repair' saves what can be read. With
    --json: {"dataDir": "...", "sound": true, "queues": 2, "items": 4, "topics": 0, "remarks": [],
    "damage": []}; the three numbers are null if there is damage, also such that the store cannot be
    opened for.
    """
    from queueber.db.upgrade.swap import refuse_interrupted

    refuse_interrupted(folder)
    if not (folder / "CURRENT").is_file() and not any(folder.glob("*.sst")):
        raise Failure(f"there is no store in {folder}; nothing was created", STORE)
    try:
        with locked(folder):
            found = check_folder(folder)
    except (StorageCorrupt, Failure) as error:
        if use_json:
            echo_json(_to_json(folder, Verdict([], [str(error)], "")))
        raise
    if use_json:
        echo_json(_to_json(folder, found))
    else:
        for line in (*found.remarks, *found.damage):
            click.echo(line)
        click.echo(f"{folder} is {'damaged' if found.damage else 'sound'}: {found.summary}")
    if found.damage:
        raise Exit(NEGATIVE)


def _to_json(folder: Path, found: Verdict) -> dict[str, object]:
    return {
        "dataDir": str(folder),
        "sound": not found.damage,
        "queues": None if found.damage else found.queues,
        "items": None if found.damage else found.items,
        "topics": None if found.damage else found.topics,
        "remarks": found.remarks,
        "damage": found.damage,
    }


def check_folder(folder: Path) -> Verdict:
    """Read and check a whole store that no server uses."""
    # Other commands do not need RocksDB.
    from queueber.db.families import Family
    from queueber.db.records.queues import decode_counters
    from queueber.db.recovery.opening import check_data_dir
    from queueber.db.recovery.salvage import find_gaps
    from queueber.db.store.rocks import RocksStore
    from queueber.engine.integrity.check_store import check_store
    from queueber.engine.topics.topics import TOPICS_KEY

    check_data_dir(folder)
    try:
        with RocksStore(folder, read_only=True) as store:
            remarks = [store.torn] if store.torn else []
            if unreadable := [str(gap) for gap in find_gaps(store)]:
                places = counted(len(unreadable), "place")
                told = f"{places} cannot be read; the rules were not checked"
                return Verdict(remarks, unreadable, told)
            if violations := [str(each) for each in check_store(store, _VIOLATIONS_MAX)]:
                least = "at least " if len(violations) == _VIOLATIONS_MAX else ""
                told = f"{least}{counted(len(violations), 'violation')}"
                return Verdict(remarks, violations, told)
            queues = [prefix for prefix, _ in store.walk(Family.QUEUES, b"", b"\xff" * 8)]
            kept = [decode_counters(store.get(Family.COUNTERS, each) or b"") for each in queues]
            topics = int.from_bytes(store.get(Family.DEFAULT, TOPICS_KEY) or b"")
    except QueueberError:
        raise
    except Exception as error:
        # RocksDB found a damaged file, or a record cannot be decoded.
        reason = str(error).partition("\n")[0]
        raise Failure(f"the store in {folder} cannot be read: {reason}", STORE) from error
    items = sum(each.ready + each.delayed + each.leased + each.dead for each in kept)
    held = f"{counted(len(kept), 'queue')}, {counted(items, 'item')}"
    summary = f"{held}, {counted(topics, 'topic')}" if topics else held
    return Verdict(remarks, [], summary, len(kept), items, topics)


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


@click.command()
@data_dir_flag
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    required=True,
    help="The new data directory. It must be new or empty, and needs as much disk space as the old "
    "one, or twice as much if RocksDB's list of files is damaged.",
)
def repair(folder: Path, into: Path) -> None:
    """Copy what can be read of a damaged store into a new one.

    \b
    Example:
      queueber repair --data-dir /var/lib/queueber --into /var/lib/queueber-repaired

    It copies every entry that can be read, up to where the log is damaged, and then repairs each
    damaged queue until 'queueber verify' finds nothing wrong. Undamaged queues are copied
    unchanged. The old directory is not changed; keep it until you have checked the new one.

    \b
    What may be lost, and what else may happen to a damaged queue:
      - items, results, keys and receipts in damaged blocks are lost
      - everything in the log after a damaged record is lost, acknowledged or not
      - all leases end: their items are ready again, and may be worked on twice
      - an item whose state is lost becomes ready
      - lost items of a batch count as dead in its receipt
      - of the results, the newest without a gap are kept
      - loads that are not committed are dropped; repeat them
      - without RocksDB's list of files, items that were just deleted may come back

    Prints what happened. Ends with 0 if nothing was lost, with 1 if something was, and with 5 if
    nothing could be saved.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        raise Failure(f"there is no store in {folder}; nothing was created", STORE)
    if into.exists() and any(into.iterdir() if into.is_dir() else [into]):
        raise Failure(f"--into: {into} is not empty; name a new directory", USAGE)
    with locked(folder):
        copied, losses = _repair(folder, into)
    for loss in losses:
        click.echo(loss)
    click.echo(f"{into} is sound: {copied:,} entries saved from {folder}")
    if losses:
        raise Exit(NEGATIVE)


def _repair(folder: Path, into: Path) -> tuple[int, list[str]]:
    """How many entries were saved, and what was not."""
    from queueber.db.recovery.opening import check_data_dir
    from queueber.db.recovery.salvage import Salvage
    from queueber.db.store.rocks import RocksStore
    from queueber.engine.integrity.rebuild_store import broken_queues, rebuild_store

    check_data_dir(folder)
    _refuse_other_formats(folder)
    losses: list[str] = []
    into.mkdir(parents=True, exist_ok=True)
    # Built in a folder of its own, so that nobody takes half a store for a whole one.
    unfinished = into / _UNFINISHED
    try:
        with Salvage(folder, unfinished / "work") as salvage:
            losses += salvage.remarks
            with RocksStore(unfinished / "data") as store:
                copied = salvage.copy_to(store, lambda gap: losses.append(f"cannot be read: {gap}"))
                losses += rebuild_store(store)
                left = broken_queues(store)
    except Exception as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        reason = str(error).partition("\n")[0]
        raise Failure(f"nothing of {folder} could be saved: {reason}", STORE) from error
    if left:
        named = ", ".join(sorted(left))
        raise Failure(f"{unfinished} is still damaged, in {named}; please report this bug", STORE)
    for file in (unfinished / "data").iterdir():
        file.rename(into / file.name)
    shutil.rmtree(unfinished)
    if (folder / "loads").is_dir():
        shutil.copytree(folder / "loads", into / "loads", dirs_exist_ok=True)
    return copied, losses


def _refuse_other_formats(folder: Path) -> None:
    from queueber.db.recovery.opening import stored_format
    from queueber.db.store.format import check_format

    try:
        found = stored_format(folder)
    except StorageCorrupt:
        return  # the salvage will see what can be read
    if found is not None:
        check_format(found, is_empty=False)
