"""Dead letters: when and why the items of a run died, and the run.

died-at 8 | reason 1 | run 20
"""

from queueber.db.records.keys import TIME_BYTES
from queueber.db.records.runs import Run, decode_run, encode_run, run_count


def encode_dead(died_at_ms: int, reason: int, run: Run) -> bytes:
    return died_at_ms.to_bytes(TIME_BYTES) + bytes([reason]) + encode_run(run)


def decode_dead(last: bytes, value: bytes) -> tuple[int, int, Run]:
    """Died-at, reason, and the run; `last` is in the key."""
    run = decode_run(last, value[TIME_BYTES + 1 :])
    return int.from_bytes(value[:TIME_BYTES]), value[TIME_BYTES], run


def dead_count(value: bytes) -> int:
    """How many dead letters an entry has, without reading the rest."""
    return run_count(value[TIME_BYTES + 1 :])
