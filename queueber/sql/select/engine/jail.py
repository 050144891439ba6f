"""What the kernel forbids the engine: more memory, more time, files, sockets, processes."""

import os
import resource
from contextlib import suppress
from pathlib import Path


class Jail:
    """The limits of this process, from its making on.

    Memory is address space: the kernel refuses what is above at once, and pages that are never
    touched count as well. Everything that a statement may need must be loaded before.
    """

    def __init__(self, memory_bytes: int) -> None:
        most = _address_space() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        # On a machine that has no memory left, this process goes before the gateway does.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        # Files of what was loaded: the schemas, and folders that Cap'n Proto keeps open.
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        # Neither a file, a socket, a pipe nor an event can be opened above standard error.
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._started_with = _peak_bytes()

    def allow_seconds(self, seconds: int) -> None:
        """The kernel ends this process after so much more processor time, whoever else is left."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))

    @property
    def grown_bytes(self) -> int:
        """How much memory it has had at most, beyond that of its start."""
        return _peak_bytes() - self._started_with


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
