"""The note `SYNCED` in a data directory: up to which sequence number everything was on disk.

It is renewed once a second and at the end of a server, so it lags behind. A store that comes back
with less than it says has lost something that was acknowledged: the end of the log, or a whole
file. The log's own notes (see `wal.py`) say the same, but not of its very end.
"""

import os
from pathlib import Path
from zlib import crc32

from queueber.errors import StorageCorrupt

FILE_NAME = "SYNCED"


def read_synced(folder: Path) -> int:
    """The sequence number; 0 when there is no note."""
    file = folder / FILE_NAME
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return 0
    number, _, checksum = text.strip().partition(b" ")
    if not number.isdigit() or checksum != b"%08x" % crc32(number):
        raise StorageCorrupt(
            f"{file} is damaged, and with it perhaps more: look at the disk; without that file the "
            "store can be opened and 'queueber verify' checks the rest, all but the end of the log"
        )
    return int(number)


def write_synced(folder: Path, sequence: int) -> None:
    """Replace the note, so that a crash leaves the old one or the new."""
    number = b"%d" % sequence
    made = folder / f"{FILE_NAME}.new"
    with made.open("wb") as file:
        file.write(b"%s %08x\n" % (number, crc32(number)))
        file.flush()
        os.fsync(file.fileno())
    made.replace(folder / FILE_NAME)
    # Not synced itself, the folder may still name the old file after a loss of power: it says less.
