"""Readers of a log: how far each has read.

A log remembers a reader from its first acknowledgement until it is dropped. Offset n acknowledges
the rows before n, and the reader goes on at n.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.log import encode_offset, reader_key
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log.log import Log, check_offset
from queueber.errors import ResourceExhausted, invariant
from queueber.limits import LOG_READERS_MAX


def acknowledge(tx: Transaction[Any], log: Log, reader: str, offset: int) -> None:
    """Remember that the reader is done with the rows before `offset`.

    An offset that the reader has passed already changes nothing, because calls may be repeated.
    """
    # With an empty name the key would be that of the head.
    invariant(reader, "I12", log=log.prefix, reader=reader)
    check_offset(log, offset)
    known = log.readers.get(reader)
    if known is not None and offset <= known:
        return
    if known is None and len(log.readers) >= LOG_READERS_MAX:
        raise ResourceExhausted(
            f"{reader!r} would be one reader more than the limit of {LOG_READERS_MAX}; "
            "drop one that reads no more"
        )
    tx.batch.put(Family.LOGS, reader_key(log.prefix, reader), encode_offset(offset))
    tx.after_write(log.readers.__setitem__, reader, offset)


def reader_offset(log: Log, reader: str) -> int:
    """Where the reader goes on; for an unknown reader, the oldest row.

    The offset may be before the oldest row: `read` then says how many rows the reader missed.
    """
    return log.readers.get(reader, log.head.first_offset)


def drop_reader(tx: Transaction[Any], log: Log, reader: str) -> bool:
    """Forget the reader, so that no rows are kept for it; False if it was not known."""
    if reader not in log.readers:
        return False
    tx.batch.delete(Family.LOGS, reader_key(log.prefix, reader))
    tx.after_write(log.readers.pop, reader)
    return True
