"""The layout of a Cap'n Proto message in one segment, for records that are encoded by hand.

segment table (8 bytes) | root pointer (8) | data words | pointers | what they point to
"""

WORD = 8
DATA_LIST = 2
"""Element size code of a list of bytes."""

_PADDING = [bytes(-n % WORD) for n in range(WORD)]


def root_pointer(data_words: int, pointers: int) -> int:
    return data_words << 32 | pointers << 48


def list_pointer(offset_words: int, byte_count: int) -> int:
    """A pointer to a list of bytes that begins `offset_words` after it."""
    return offset_words << 2 | 1 | (byte_count << 3 | DATA_LIST) << 32


def words(byte_count: int) -> int:
    return (byte_count + WORD - 1) // WORD


def padding(byte_count: int) -> bytes:
    """The zeros that fill the last word."""
    return _PADDING[byte_count & 7]
