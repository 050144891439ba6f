"""Readers of a log: how far each has come.

A reader is known from its first acknowledgement until it is dropped. Offset n acknowledges the rows
before n, and is where the reader goes on.
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

    One that lies before what the reader has acknowledged changes nothing: calls are repeated.
    """
    # A name of no bytes would be the key of the head.
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
    """Where the reader goes on; for one that is not known, the oldest row.

    May lie before the oldest row: `read` then tells what the reader missed.
    """
    return log.readers.get(reader, log.head.first_offset)


def drop_reader(tx: Transaction[Any], log: Log, reader: str) -> bool:
    """Forget the reader, so that rows no longer wait for it; False when it was not known."""
    if reader not in log.readers:
        return False
    tx.batch.delete(Family.LOGS, reader_key(log.prefix, reader))
    tx.after_write(log.readers.pop, reader)
    return True
