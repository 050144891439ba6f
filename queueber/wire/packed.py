"""Codecs of packed columns: values of many items in one buffer, and ids as runs."""

from collections.abc import Sequence
from itertools import accumulate
from struct import pack
from typing import Any

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.model import PackedContents

_END_BYTES = 4


def write_packed(target: Any, values: Sequence[bytes]) -> None:
    if isinstance(values, PackedContents):
        target.ends, target.values = values.ends_from_zero, values.values
    else:
        target.ends = pack(f"<{len(values)}I", *accumulate(map(len, values)))
        target.values = b"".join(values)


def read_packed(field: str, source: Any, count_max: int) -> PackedContents:
    """The values of a request; refuses too many, and ends that do not fit."""
    ends = source.ends
    if len(ends) > count_max * _END_BYTES:
        raise ResourceExhausted(
            f"{field}: the call has {len(ends) // _END_BYTES}; the limit is {count_max}, send "
            "several calls"
        )
    try:
        return PackedContents.read(source.values, ends)
    except ValueError as error:
        raise InvalidArgument(f"{field}: {error}") from None
