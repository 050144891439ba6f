"""Open a database, also after a crash: it holds everything that was synced, or opening it raises.

The log is replayed in RocksDB's strictest mode, which accepts only undamaged logs. After a power
loss the end of the log may be torn: then `wal.py` tells whether anything synced is missing. If so,
the store is damaged, and stays as it is. If not, the replay ends before the torn record: what
follows was never acknowledged, or only with `--durability=os`.

RocksDB and rocksdict write `LOG`, `LOCK` and `rocksdict-config.json` even when they refuse to open.
So `check_data_dir` is asked before: it reads names, and the list of column families in RocksDB's
manifest, and writes nothing.
"""

import contextlib
import fcntl
import mmap
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import rocksdict

from queueber.db.families import Family
from queueber.db.recovery.wal import (
    BROKEN_HEADER,
    SYNCED_FILE,
    Break,
    find_break,
    find_hole,
    read_synced,
)
from queueber.db.store.format import check_format
from queueber.db.store.options import BLOCK_CACHE_BYTES, database_options, family_options
from queueber.db.upgrade.swap import refuse_interrupted
from queueber.errors import DataDirLocked, StorageCorrupt

REPAIR = "'queueber repair' saves what can be read into a new directory; or restore a backup"


FAMILIES = {family.family_name: family for family in Family}


def open_database(path: Path, *, read_only: bool) -> tuple[rocksdict.Rdict, str]:
    """The database, and where its log broke off, without a loss; empty if it was whole."""
    with _translated_errors(path):
        refuse_interrupted(path)
        if not (path / "CURRENT").is_file():
            _refuse_remains(path)
            if read_only:
                raise StorageCorrupt(f"cannot open the store at {path}: there is none")
        else:
            _refuse_other_families(path)
            if read_only:
                _refuse_missing_families(path)
        return _open(path, FAMILIES, read_only=read_only)


def open_of_any_format(path: Path) -> tuple[rocksdict.Rdict, str]:
    """As `open_database`, to read a store with the families that it has."""
    with _translated_errors(path):
        return _open(path, _names_of_families(path), read_only=True)


def _open(path: Path, names: Collection[str], *, read_only: bool) -> tuple[rocksdict.Rdict, str]:
    synced = read_synced(path)
    with _ended_at_holes(path, read_only=read_only):
        database, torn = _replay(path, names, synced, read_only=read_only)
    replayed = database.latest_sequence_number()
    if replayed < synced:
        database.close()
        raise StorageCorrupt(
            f"the store at {path} ends with change {replayed}, but {synced} were synced: the "
            f"end of its log is missing; {REPAIR}"
        )
    return database, torn


def _replay(
    path: Path, names: Collection[str], synced: int, *, read_only: bool
) -> tuple[rocksdict.Rdict, str]:
    try:
        return open_raw(path, names, read_only=read_only, strict=True), ""
    except Exception as error:
        if not _is_about_a_log(str(error)):
            raise
    torn = _judge_break(path, names, synced)
    return open_raw(path, names, read_only=read_only), torn


def open_raw(
    path: Path,
    names: Collection[str] = FAMILIES.keys(),
    *,
    read_only: bool = True,
    strict: bool = False,
) -> rocksdict.Rdict:
    """Open a store with its log up to where that breaks off; `strict` refuses a log that does."""
    cache = rocksdict.Cache(BLOCK_CACHE_BYTES)
    # Families of other formats get the options of `default`.
    families = {name: family_options(FAMILIES.get(name, Family.DEFAULT), cache) for name in names}
    access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
    return rocksdict.Rdict(str(path), database_options(strict=strict), families, access)


def _judge_break(path: Path, names: Collection[str], synced: int) -> str:
    """Where the replay will end; raises if something that was synced comes after that."""
    database = open_raw(path, names)
    replayed = database.latest_sequence_number()
    database.close()
    found = log_break(path, replayed)
    if found is None:
        return ""
    where = f"{path / found.file}, byte {found.position}"
    if (known := max(found.synced, synced)) > replayed:
        raise StorageCorrupt(
            f"the log of the store is damaged at {where}: it can be read up to change {replayed}, "
            f"but {known} or more were synced; look at the disk; {REPAIR}"
        )
    return f"the log breaks off at {where}, after change {replayed}; nothing behind it was synced"


def log_break(path: Path, replayed: int) -> Break | None:
    """Where the log breaks off; None if it holds no more than was replayed."""
    with _mapped_logs(path) as logs:
        return find_break(logs, replayed)


@contextlib.contextmanager
def _ended_at_holes(path: Path, *, read_only: bool) -> Iterator[None]:
    """Make RocksDB end its replay at holes in the logs; undone if opening the store fails."""
    with _mapped_logs(path) as logs:
        holes = {name: hole for name, data in logs if (hole := find_hole(data)) is not None}
    if not holes:
        yield
        return
    if read_only:
        name, position = next(iter(holes.items()))
        raise StorageCorrupt(
            f"the log of the store has a hole at {path / name}, byte {position}; start the "
            "server: it drops what follows if that was not synced, else it says what to do"
        )
    _check_not_in_use(path)
    for name, position in holes.items():
        _overwrite(path / name, position, BROKEN_HEADER)
    try:
        yield
    except BaseException:
        for name, position in holes.items():
            _overwrite(path / name, position, bytes(len(BROKEN_HEADER)))
        raise


def _overwrite(file: Path, position: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(data)


def _check_not_in_use(path: Path) -> None:
    """Raise if another process has the store open. RocksDB checks that too late for us."""
    with (path / "LOCK").open("ab") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _in_use(path) from error


@contextlib.contextmanager
def _mapped_logs(path: Path) -> Iterator[list[tuple[str, bytes]]]:
    """All logs, oldest first, mapped into memory: a log may have hundreds of megabytes."""
    with contextlib.ExitStack() as stack:
        logs: list[tuple[str, bytes]] = []
        for file in sorted(path.glob("*.log"), key=lambda file: (len(file.name), file.name)):
            if not file.stat().st_size:
                continue
            opened = stack.enter_context(file.open("rb"))
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            stack.callback(mapped.close)
            logs.append((file.name, mapped))  # type: ignore[arg-type]  # a map reads like bytes
        yield logs


def _refuse_other_families(path: Path) -> None:
    """Raise for a store of another format: opening it would add the families of this one."""
    if set(_names_of_families(path)) == set(FAMILIES):
        return
    number = _stored_format(path)
    if number is not None:  # without a number, a crash came while the store was created
        check_format(number, is_empty=False)


def _refuse_missing_families(path: Path) -> None:
    """Raise for a store of this format that is older than one of its families: nothing is wrong
    with it, and whoever may write adds the family."""
    if missing := sorted(set(FAMILIES).difference(_names_of_families(path))):
        raise StorageCorrupt(
            f"the store at {path} is older than {', '.join(missing)}, which a server adds when it "
            "opens the store; start one, stop it, and try again"
        )


def stored_format(path: Path) -> bytes | None:
    """The format number that a store has; None if it has none yet. Changes nothing."""
    with _translated_errors(path):
        return _stored_format(path)


def _stored_format(path: Path) -> bytes | None:
    options = rocksdict.Options(raw_mode=True)
    families = {name: rocksdict.Options(raw_mode=True) for name in _names_of_families(path)}
    store = rocksdict.Rdict(str(path), options, families, rocksdict.AccessType.read_only())
    try:
        number: bytes | None = store.get(b"format")
    finally:
        store.close()
    return number


def _names_of_families(path: Path) -> list[str]:
    return rocksdict.Rdict.list_cf(str(path), rocksdict.Options(raw_mode=True))


def _refuse_remains(path: Path) -> None:
    """Raise rather than create a new store among files of an old one."""
    if any(path.glob("*.sst")) or read_synced(path):
        raise StorageCorrupt(
            f"the store at {path} has lost its file CURRENT, and cannot be opened; {REPAIR}"
        )


def _is_about_a_log(text: str) -> bool:
    """Whether an error of RocksDB is about a log. Errors about other files name them."""
    elsewhere = (".sst", "MANIFEST", "CURRENT", "log number", "VersionEdit", "OPTIONS")
    return text.startswith("Corruption") and not any(word in text for word in elsewhere)


@contextlib.contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (StorageCorrupt, DataDirLocked):
        raise
    except Exception as error:
        text = str(error).strip()
        if "lock hold" in text or ("LOCK" in text and "unavailable" in text):
            raise _in_use(path) from error
        advice = f"; {REPAIR}" if (path / "CURRENT").exists() else ""
        raise StorageCorrupt(f"cannot open the store at {path}: {text}{advice}") from error


def _in_use(path: Path) -> DataDirLocked:
    return DataDirLocked(
        f"the data directory {path} is in use by another server; "
        "stop it, or choose another with --data-dir"
    )


# --- is the directory ours? -----------------------------------------------------------------------

_STORE_FILES = re.compile(r"\d{6,}\.sst|MANIFEST-\d+|SYNCED")
"""A store that lost its file CURRENT still has one of these; opening it says what to do."""

_HARMLESS = re.compile(
    r"LOCK|LOG(\.old\.\d+)?|IDENTITY|OPTIONS-\d+(\.dbtmp)?|\d{6,}\.(log|dbtmp)"
    r"|SYNCED\.new|rocksdict-config\.json|loads|checkpoints|lost\+found"
)
"""What a start that was killed leaves before there is a store, and what a new file system has."""

_NAMES_SHOWN = 3
_ADVICE = "nothing was changed; choose an empty or new directory with --data-dir"


class ForeignDirectory(StorageCorrupt):
    """The directory holds something else than a store of this program."""


def check_data_dir(path: Path) -> None:
    """Raise `ForeignDirectory` if anything but a store of ours is in `path`. Changes nothing.

    A directory that does not exist, an empty one and a damaged store of ours pass. One whose
    upgrade was interrupted raises `UpgradeInterrupted`.
    """
    refuse_interrupted(path)
    names = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    if SYNCED_FILE in names:
        return  # no other program writes it, and a damaged manifest may have lost our families
    if "CURRENT" in names:
        _check_families(path)
        return
    others = [name for name in names if not _HARMLESS.fullmatch(name)]
    if others and not any(_STORE_FILES.fullmatch(name) for name in names):
        raise ForeignDirectory(
            f"{path} is neither empty nor a data directory of Queueber: it holds "
            f"{_listed(others)}; {_ADVICE}"
        )


def _check_families(path: Path) -> None:
    try:
        found = set(_names_of_families(path))
    except Exception:  # noqa: BLE001  RocksDB has one type for all; opening says what is wrong
        return
    # Every format of ours has `queues`; a first start that was killed may lack it, and has no data.
    is_unfinished = found <= set(FAMILIES) and not _has_data(path)
    if Family.QUEUES.family_name in found or is_unfinished:
        return
    raise ForeignDirectory(
        f"{path} holds a RocksDB store of another program, perhaps of the original Queueber "
        f"(column families {_listed(sorted(found))}); this version cannot read it; {_ADVICE}"
    )


def _has_data(path: Path) -> bool:
    logs = any(file.stat().st_size for file in path.glob("*.log"))
    return logs or any(path.glob("*.sst"))


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{shown} and {left} more" if left > 0 else shown
