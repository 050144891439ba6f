"""The file `SYNCED` in a data directory: the sequence number up to which everything was synced.

The server writes it once a second and when it stops, so the number is a little old. A store that is
opened with less has lost acknowledged data: the end of its log, or a whole file. The notes in the
log itself (see `wal.py`) cannot tell that its end is missing. The file is local to one store: a
copy of the entries goes without it.
"""

import os
from pathlib import Path
from zlib import crc32

from queueber.errors import StorageCorrupt

FILE_NAME = "SYNCED"


def read_synced(folder: Path) -> int:
    """The sequence number; 0 if there is no file."""
    file = folder / FILE_NAME
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return 0
    number, _, checksum = text.strip().partition(b" ")
    if not number.isdigit() or checksum != b"%08x" % crc32(number):
        raise StorageCorrupt(
            f"{file} is damaged, and other files may be, too: look at the disk; without this file "
            "the store can be opened, and 'queueber verify' checks all but the end of the log"
        )
    return int(number)


def write_synced(folder: Path, sequence: int) -> None:
    """Replace the file; a crash leaves the old one or the new one."""
    number = b"%d" % sequence
    made = folder / f"{FILE_NAME}.new"
    with made.open("wb") as file:
        file.write(b"%s %08x\n" % (number, crc32(number)))
        file.flush()
        os.fsync(file.fileno())
    made.replace(folder / FILE_NAME)
    # The folder is not synced: after a power loss the old file, with a lower number, may be back.
