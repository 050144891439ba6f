"""Codecs of backups: messages to plain values and back."""

from typing import Any

from queueber.limits import BACKUP_FILES_MAX
from queueber.model import BackupFile, BackupInfo
from queueber.wire.lists import Codec, read_list

_BACKUP = Codec(BackupInfo, without=("files",))
_FILE = Codec(BackupFile, size="bytes")


def write_backup(target: Any, backup: BackupInfo) -> None:
    _BACKUP.write(target, backup)
    files = target.init("files", len(backup.files))
    for at, file in enumerate(backup.files):
        _FILE.write(files[at], file)


def read_backup(source: Any) -> BackupInfo:
    files = read_list("files", source.files, BACKUP_FILES_MAX)
    return _BACKUP.read(source, files=[_FILE.read(file) for file in files])
