"""Is a directory ours? Asked before a store is opened, because opening one writes files.

RocksDB and rocksdict write `LOG`, `LOCK` and `rocksdict-config.json` even when they refuse to open.
This check reads names, and the list of column families in RocksDB's manifest, and writes nothing.
"""

import re
from pathlib import Path

import rocksdict

from queueber.db.families import Family
from queueber.db.recovery.wal import SYNCED_FILE
from queueber.errors import StorageCorrupt

_STORE_FILES = re.compile(r"\d{6,}\.sst|MANIFEST-\d+|SYNCED")
"""A store that lost its file CURRENT still has one of these; opening it says what to do."""

_HARMLESS = re.compile(
    r"LOCK|LOG(\.old\.\d+)?|IDENTITY|OPTIONS-\d+(\.dbtmp)?|\d{6,}\.(log|dbtmp)"
    r"|SYNCED\.new|rocksdict-config\.json|loads|lost\+found"
)
"""What a start that was killed leaves before there is a store, and what a new file system has."""

_NAMES_SHOWN = 3
_ADVICE = "nothing was changed; choose an empty or new directory with --data-dir"


class ForeignDirectory(StorageCorrupt):
    """The directory holds something else than a store of this program."""


def check_data_dir(path: Path) -> None:
    """Raise `ForeignDirectory` if anything but a store of ours is in `path`. Changes nothing.

    A directory that does not exist, an empty one and a damaged store of ours pass.
    """
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
        found = set(rocksdict.Rdict.list_cf(str(path), rocksdict.Options(raw_mode=True)))
    except Exception:  # noqa: BLE001  RocksDB has one type for all; opening says what is wrong
        return
    # Every format of ours has `queues`; a first start that was killed may lack it, and has no data.
    is_unfinished = found <= {family.family_name for family in Family} and not _has_data(path)
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
