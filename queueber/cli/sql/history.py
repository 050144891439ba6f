"""The history of the prompt: a file with the last statements, for its user alone."""

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from queueber.limits import MIB

_ENTRIES_MAX = 1_000
_BYTES_MAX = MIB
VARIABLE = "QUEUEBER_SQL_HISTORY"


def history_path() -> Path | None:
    """Where it is; the variable names another file, or is empty for none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "queueber" / "sql_history"


def open_history() -> History:
    """The history, cut to its bounds; one in memory if the file cannot be used."""
    path = history_path()
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        _cut(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _cut(path: Path) -> None:
    if path.stat().st_size > 2 * _BYTES_MAX:
        path.write_bytes(path.read_bytes()[-_BYTES_MAX:].partition(b"\n\n")[2])
    kept: list[str] = []
    size = 0
    newest_first = list(FileHistory(path).load_history_strings())
    for entry in newest_first[:_ENTRIES_MAX]:
        size += len(entry.encode(errors="replace"))
        if size > _BYTES_MAX:
            break
        kept.append(entry)
    if len(kept) < len(newest_first):
        path.write_bytes(b"")
        rewritten = FileHistory(path)
        for entry in reversed(kept):
            rewritten.store_string(entry)
