"""Ids of many items as runs of consecutive ones."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from struct import Struct
from typing import cast, overload

from queueber.ids import ItemId, ids_up_to, shifted

_RUN = Struct("<16sI")

IdRun = tuple[ItemId, int]
"""The last of consecutive ids, and how many there are."""


class IdRuns(Sequence[ItemId]):
    """Ids, each of which is made when somebody asks for it.

    Items that came together have consecutive ids, so thousands of them are one run.
    """

    __slots__ = ("runs",)

    def __init__(self, runs: Sequence[IdRun]) -> None:
        self.runs = runs

    @classmethod
    def read(cls, packed: bytes) -> "IdRuns":
        """What `packed` wrote."""
        return cls(cast("list[IdRun]", list(_RUN.iter_unpack(packed))))

    @property
    def packed(self) -> bytes:
        """20 bytes for each run: the last id, and the number of ids, little-endian."""
        return b"".join(starmap(_RUN.pack, self.runs))

    def split(self, counts: Iterable[int]) -> Iterator["IdRuns"]:
        """As many ids as each count says, one after the other."""
        runs = iter(self.runs)
        last, left = ItemId(b""), 0
        for count in counts:
            part: list[IdRun] = []
            while count:
                if not left:
                    last, left = next(runs)
                taken = min(count, left)
                left -= taken
                count -= taken  # noqa: PLW2901  what is still to be taken
                part.append((shifted(last, -left) if left else last, taken))
            yield IdRuns(part)

    # --- as a sequence of bytes -------------------------------------------------------------------

    def __len__(self) -> int:
        return sum([count for _, count in self.runs])

    @overload
    def __getitem__(self, at: int) -> ItemId: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[ItemId]: ...

    def __getitem__(self, at: int | slice) -> ItemId | Sequence[ItemId]:
        if isinstance(at, int):
            at = range(len(self))[at]
            return next(_cut(self.runs, at, at + 1))[0]
        start, stop, step = at.indices(len(self))
        return IdRuns(list(_cut(self.runs, start, stop))) if step == 1 else list(self)[at]

    def __iter__(self) -> Iterator[ItemId]:
        runs = self.runs
        if len(self) == len(runs):
            return iter([last for last, _ in runs])
        return chain.from_iterable(starmap(ids_up_to, runs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"IdRuns({list(self)!r})"


def _cut(runs: Iterable[IdRun], start: int, stop: int) -> Iterator[IdRun]:
    """The runs of the ids from one position up to, not including, another."""
    end = 0
    for last, count in runs:
        begin, end = end, end + count
        first, after = max(begin, start), min(end, stop)
        if first < after:
            yield (last if after == end else shifted(last, after - end)), after - first
