"""What the disk does meanwhile: a process that syncs a small file of its own, again and again.

Calls wait for syncs. When the disk is slow for a moment, the process notices that as well.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

_PAUSE_SECONDS = 0.01
_SECONDS_MAX = 600.0


class DiskWatch:
    """Use it in a `with` block; `longest_ms` is known after it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.longest_ms = 0.0

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", __name__, str(self._folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        told, _ = self._process.communicate()  # the end of its input ends it
        self.longest_ms = float(told)


def main() -> None:
    os.set_blocking(sys.stdin.fileno(), False)
    longest, give_up_at = 0.0, time.monotonic() + _SECONDS_MAX
    with (Path(sys.argv[1]) / "watch").open("wb", buffering=0) as file:
        while sys.stdin.buffer.read(1) is None and time.monotonic() < give_up_at:
            file.seek(0)
            file.write(os.urandom(512))
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            longest = max(longest, time.perf_counter() - begun)
            time.sleep(_PAUSE_SECONDS)
    sys.stdout.write(str(longest * 1000))


if __name__ == "__main__":
    main()
