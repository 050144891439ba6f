"""Memory and disk writes of a server's processes, from the kernel."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Usage:
    resident_bytes: int
    written_bytes: int
    """Bytes written to disk since the processes began."""


def usage_of(process_ids: Sequence[int]) -> Usage:
    return Usage(
        # Count shared pages once: PostgreSQL has a process for each connection.
        sum(_kb(each, "smaps_rollup", "Pss") for each in process_ids) * 1024,
        sum(_number(each, "io", r"^write_bytes: (\d+)$") for each in process_ids),
    )


def _kb(process_id: int, file: str, field: str) -> int:
    return _number(process_id, file, rf"^{field}:\s+(\d+) kB$")


def _number(process_id: int, file: str, pattern: str) -> int:
    try:
        text = Path(f"/proc/{process_id}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just ended
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) if found else 0
