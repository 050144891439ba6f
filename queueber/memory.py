"""Memory of a process that serves: what is freed is kept, and garbage is looked for seldom."""

import ctypes
import gc

from queueber.limits import MIB

_GARBAGE_OBJECTS = 50_000
"""New objects between two runs of the garbage collector."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`: what is freed at the end of the heap and larger than the first goes back
to the kernel; what is larger than the second is no part of the heap."""
_ANSWER_BYTES_KEPT = 8 * MIB
_FREED_BYTES_KEPT = 64 * MIB
"""Two answers of 4 MiB are copied from the store to the socket in as much memory."""


def keep_freed_memory() -> None:
    """Have the C library keep the memory of large answers for the next ones.

    By default it gives that back, and the kernel clears each page when it is used again: that took
    two thirds of the time of an answer of a megabyte.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries than glibc have none
        mallopt(_MMAP_THRESHOLD, _ANSWER_BYTES_KEPT)
        mallopt(_TRIM_THRESHOLD, _FREED_BYTES_KEPT)


def collect_seldom() -> None:
    """Servers make hardly any cycles: a collection every 700 objects would waste time, and what is
    there at the start stays."""
    gc.freeze()
    gc.set_threshold(_GARBAGE_OBJECTS, 20, 100)
