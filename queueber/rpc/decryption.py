"""How much of a TLS connection is decrypted in one turn of the loop.

A caller can send its bytes in records of one byte each. The loop decrypts all records of 256 KiB at
once if they fit into the buffer that it gets, which would take tens of milliseconds. So the buffer
is as large as what the last read of the connection cost allows.
"""

from queueber.clock import seconds

READ_SECONDS_MAX = 0.0002
"""What a read of small records should take at most."""
_BYTE_SECONDS_MAX = 20e-9
"""What a byte may cost. In whole records it costs one nanosecond, in records of its own a
thousand."""
_BYTES_MIN = 64


class Decryption:
    """Sizes the reads of one connection."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = self._bytes = bytes_max
        self._began_at = 0.0

    def begin(self, buffer: memoryview) -> memoryview:
        """As much of the buffer as is filled in this turn."""
        self._began_at = seconds()
        return buffer[: self._bytes]

    def end(self, nbytes: int) -> bool:
        """It was filled with so many bytes. Returns whether others should have their turns before
        the next read: there is more, and its bytes cost much."""
        spent, is_more = seconds() - self._began_at, nbytes >= self._bytes
        if spent > READ_SECONDS_MAX and spent > nbytes * _BYTE_SECONDS_MAX:
            # No less than a quarter: the process may have waited for a processor.
            fitting = int(nbytes * READ_SECONDS_MAX / spent)
            self._bytes = max(_BYTES_MIN, self._bytes // 4, min(self._bytes, fitting))
        elif is_more:
            self._bytes = min(self._bytes_max, 2 * self._bytes)
        return is_more and self._bytes < self._bytes_max
