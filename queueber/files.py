"""Files and folders on disk."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the disk has a file, or which names a folder has."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
