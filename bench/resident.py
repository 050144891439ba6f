"""The resident memory of a process, from the kernel."""

import re
from pathlib import Path

from queueber.testing import ServerProcess


def resident_mb(server: ServerProcess, field: str = "VmRSS") -> float:
    """`VmRSS` is the present value; `VmHWM` is the highest so far."""
    assert server.process is not None
    return memory_mb(server.process.pid, field)


def memory_mb(process_id: int, field: str = "VmRSS") -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6
