"""A server whose system calls fail from a given moment on, without a compiler or root.

    python -m faults.disk.failing_calls CALL serve ...

runs `queueber serve ...`. After SIGUSR1, every `fdatasync` of the process, or every `write` to a
RocksDB log, fails with EIO: on Linux a process can forbid its own calls (seccomp). This cannot be
undone in the process; the next one works again. `limit_file_size` makes faults that end.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path

_CALLS = {
    "x86_64": {"write": 1, "pwrite64": 18, "fsync": 74, "fdatasync": 75},
    "aarch64": {"write": 64, "pwrite64": 68, "fsync": 82, "fdatasync": 83},
}

_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_CALL_AT, _FIRST_ARGUMENT_AT = 0, 16


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def why_not() -> str:
    """Why this machine cannot make calls fail; empty if it can."""
    if sys.platform != "linux" or platform.machine() not in _CALLS:
        return f"calls are made to fail by Linux on {', '.join(_CALLS)}"
    return ""


def limit_file_size(pid: int, size: int | None) -> None:
    """Make writes of a running process beyond that file size fail with EFBIG; None: stop that."""
    limit = resource.RLIM_INFINITY if size is None else size
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))


def fail_call(call: str, files: list[int] | None = None) -> None:
    """Make the call fail with EIO in all threads from now on; with files, only for those."""
    machine = platform.machine()
    steps = b""
    for file in files or [-1]:
        checks = [(_CALL_AT, _CALLS[machine][call])]
        if file >= 0:
            checks.append((_FIRST_ARGUMENT_AT, file))
        for left, (at, expected) in zip(range(len(checks), 0, -1), checks, strict=True):
            steps += _step(_LOAD, at) + _step(_EQUAL, expected, if_not=2 * left - 1)
        steps += _step(_RETURN, _FAIL | errno.EIO)
    steps += _step(_RETURN, _ALLOW)
    program = _Program(len(steps) // 8, steps)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp is not allowed here")


def _step(code: int, value: int, *, if_not: int = 0) -> bytes:
    return struct.pack("<HBBI", code, 0, if_not, value)


def logs_open() -> list[int]:
    """The open RocksDB logs of this process."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.endswith(".log") and Path(target).stem.isdigit():
            found.append(int(link.name))
    return found


def main() -> None:
    call, *arguments = sys.argv[1:]
    sys.argv = ["queueber", *arguments]

    def begin(*_: object) -> None:
        fail_call(call, logs_open() if call == "write" else None)

    signal.signal(signal.SIGUSR1, begin)
    from queueber.cli import main as queueber

    queueber()


if __name__ == "__main__":
    main()
