"""Changing the token file: all of it is written anew, into a file beside it that then replaces it.

So a server that reads it sees the old file or the new one. Two commands at once wait for each
other. Comments in the file are not kept.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from queueber.auth.token_file import Entry, read_token_file
from queueber.errors import InvalidArgument
from queueber.limits import CALLERS_MAX, SECOND_MS
from queueber.model import Grant

_HEADER = """\
# Callers of a Queueber server; 'queueber token' writes this file, and you may edit it.
# It holds hashes only. After a change, send SIGHUP to the server.
"""


def change_token_file(file: Path, change: Callable[[list[Entry]], list[Entry]]) -> None:
    """Replace the entries with what `change` makes of them. A file that does not exist is empty.

    Raises `InvalidArgument` if the file cannot be read, or if it would be wrong afterwards.
    """
    try:
        with _locked(file):
            entries = change(read_token_file(file) if file.exists() else [])
            _check(entries, file)
            _replace(file, _HEADER + "".join(map(_written, entries)))
    except OSError as error:
        raise InvalidArgument(f"cannot write {file}: {error.strerror}") from None


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One command at a time. The folder is locked, because the file itself is replaced."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _check(entries: list[Entry], file: Path) -> None:
    if len(entries) > CALLERS_MAX:
        raise InvalidArgument(
            f"{file}: would have {len(entries)} callers; the limit is {CALLERS_MAX}"
        )
    keys = [entry.key for entry in entries]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidArgument(f"{file}: {' '.join(key)} is there already; revoke it first")


def _replace(file: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as target:
            target.write(text)
            target.flush()
            os.fsync(target.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _written(entry: Entry) -> str:
    fields = {"name": _text(entry.name)}
    if entry.token_id:
        fields |= {"id": _text(entry.token_id), "sha256": _text(entry.sha256)}
    if entry.password is not None:
        fields["scrypt"] = _text(str(entry.password))
    if entry.certificate:
        fields["certificate"] = _text(entry.certificate)
    if len(entry.grants) == 1:
        fields |= _grant_fields(entry.grants[0])
    else:
        listed = (
            "{ " + ", ".join(f"{k} = {v}" for k, v in _grant_fields(grant).items()) + " }"
            for grant in entry.grants
        )
        fields["grants"] = "[\n    " + ",\n    ".join(listed) + ",\n]"
    for name, at_ms in (("created", entry.created_at_ms), ("expires", entry.expires_at_ms)):
        if at_ms:
            at = datetime.fromtimestamp(at_ms // SECOND_MS, UTC)
            fields[name] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return "\n[[callers]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items())


def _grant_fields(grant: Grant) -> dict[str, str]:
    return {
        "role": _text(grant.role),
        "queues": f"[{', '.join(map(_text, grant.queues))}]",
        "topics": f"[{', '.join(map(_text, grant.topics))}]",
    }


def _text(text: str) -> str:
    """A basic string of TOML: JSON escapes the same characters, and U+007F besides."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
