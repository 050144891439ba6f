"""Contents of many items in one buffer, as Arrow and a block of the store have them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import sub
from struct import pack
from typing import overload

_END_BYTES = 4

Buffer = bytes | bytearray | memoryview


class PackedContents(Sequence[bytes]):
    """Contents one after the other in a buffer, and where each ends in it.

    A slice shares the buffer, and costs the same whatever its length is. What a block of the store
    is made of, `ends_from_zero` and `values`, needs no Python object for each item.
    """

    __slots__ = ("_values", "ends", "start")

    def __init__(self, values: Buffer, ends: memoryview, start: int = 0) -> None:
        """`ends` has the format `I`; the first contents begin at `start` of `values`."""
        self._values = values
        self.ends = ends
        self.start = start

    @classmethod
    def read(cls, values: Buffer, ends: Buffer) -> "PackedContents":
        """What somebody else has packed: ends of 4 bytes each, little-endian.

        Raises `ValueError` if the contents do not fill the buffer.
        """
        if len(ends) % _END_BYTES:
            raise ValueError(f"the ends have {len(ends)} bytes, no multiple of {_END_BYTES}")
        view = memoryview(ends).cast("B").cast("I")
        listed = view.tolist()
        if listed != sorted(listed) or (listed[-1] if listed else 0) != len(values):
            raise ValueError(f"the ends of {len(listed)} contents do not fit {len(values)} bytes")
        return cls(values, view)

    @classmethod
    def pack(cls, contents: Iterable[bytes]) -> "PackedContents":
        listed = list(contents)
        ends = pack(f"<{len(listed)}I", *accumulate(map(len, listed)))
        return cls(b"".join(listed), memoryview(ends).cast("I"))

    @classmethod
    def join(cls, columns: Sequence["PackedContents"]) -> "PackedContents":
        """The contents of all columns, one after the other."""
        if len(columns) == 1:
            return columns[0]
        ends: list[bytes] = []
        size = 0
        for each in columns:
            ends.append(_moved(each.ends, size - each.start))
            size += each.size
        view = memoryview(b"".join(ends)).cast("I")
        return cls(b"".join([each.values for each in columns]), view)

    # --- what there is ----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return self.ends[-1] - self.start if self.ends else 0

    @property
    def sizes(self) -> list[int]:
        ends = self.ends.tolist()
        return list(map(sub, ends, chain((self.start,), ends)))

    @property
    def max_size(self) -> int:
        """Bytes of the largest contents."""
        return max(self.sizes, default=0)

    @property
    def values(self) -> memoryview:
        """The contents one after the other."""
        return memoryview(self._values)[self.start : self.start + self.size]

    @property
    def joined(self) -> bytes:
        """The same as bytes; no copy if the buffer holds nothing else."""
        values = self._values
        if isinstance(values, bytes) and not self.start and len(values) == self.size:
            return values
        return bytes(self.values)

    @property
    def ends_from_zero(self) -> bytes:
        """Where each ends in `values`, 4 bytes each, little-endian."""
        return _moved(self.ends, -self.start)

    # --- as a sequence of bytes -------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> "PackedContents": ...

    def __getitem__(self, at: int | slice) -> "bytes | PackedContents":
        if isinstance(at, int):
            at = range(len(self.ends))[at]
            return bytes(self._values[self._begin(at) : self.ends[at]])
        start, stop, step = at.indices(len(self.ends))
        if step != 1:
            return PackedContents.pack([self[each] for each in range(start, stop, step)])
        return PackedContents(self._values, self.ends[start:stop], self._begin(start))

    def _begin(self, at: int) -> int:
        return self.ends[at - 1] if at else self.start

    def __iter__(self) -> Iterator[bytes]:
        # Slices of bytes cost half of what those of a view do.
        values, start, ends = self._values, self.start, self.ends.tolist()
        if not isinstance(values, bytes):
            values, start, ends = bytes(self.values), 0, [end - start for end in ends]
        return iter([values[a:b] for a, b in zip((start, *ends), ends, strict=False)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"PackedContents({list(self)!r})"


def total_size(contents: Sequence[bytes]) -> int:
    """Bytes of all contents, packed or not."""
    return contents.size if isinstance(contents, PackedContents) else sum(map(len, contents))


def largest_size(contents: Sequence[bytes]) -> int:
    """Bytes of the largest contents, packed or not."""
    if isinstance(contents, PackedContents):
        return contents.max_size
    return max(map(len, contents), default=0)


def _moved(ends: memoryview, by: int) -> bytes:
    """The ends, each moved by so much.

    All of them are moved at once, as one long number, which costs a fifth of a loop. No end
    becomes negative or too large, so nothing is carried from one to the next.
    """
    if not by:
        return ends.tobytes()
    ones = int.from_bytes((1).to_bytes(_END_BYTES, "little") * len(ends), "little")
    return (int.from_bytes(ends, "little") + by * ones).to_bytes(ends.nbytes, "little")
