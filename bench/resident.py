"""How much memory a process has, from the kernel's own account."""

import re
from pathlib import Path

from queueber.testing import ServerProcess


def resident_mb(server: ServerProcess, field: str = "VmRSS") -> float:
    """`VmRSS` is what it has now; `VmHWM` is the highest it has been."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6
