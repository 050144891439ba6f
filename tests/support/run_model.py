"""Runs as what they stand for: single items, each of which knows its block and its size."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from queueber.db.records.runs import Mark, MarkFields, Run, encode_mark, make_run
from queueber.ids import IdSource, ItemId

MARKS = [encode_mark(MarkFields()), encode_mark(MarkFields(batch=7, attempts=1))]


class Item(NamedTuple):
    """An item of a block, which is known by its last id."""

    item_id: bytes
    block: bytes
    position: int
    mark: Mark
    size: int


class SizedBlock(NamedTuple):
    """A block of which only the sizes of its items are known."""

    last: ItemId
    sizes: Sequence[int]

    def size(self, start: int, stop: int) -> int:
        return sum(self.sizes[start:stop])

    def item_id(self, position: int) -> ItemId:
        number = int.from_bytes(self.last) - len(self.sizes) + 1 + position
        return ItemId(number.to_bytes(16))

    def run(self, start: int, stop: int, mark: Mark = MARKS[0]) -> Run:
        """The items from one position up to, not including, another."""
        size = self.size(start, stop)
        return make_run(self.item_id(stop - 1), stop - start, start, len(self.sizes), size, mark)

    def items(self, start: int, stop: int, mark: Mark = MARKS[0]) -> list[Item]:
        """The same as items."""
        return [
            Item(self.item_id(at), self.last, at, mark, self.sizes[at]) for at in range(start, stop)
        ]


def items_of(runs: Iterable[Run], blocks: Iterable[SizedBlock]) -> list[Item]:
    """The items that runs stand for; each run must be the one that a block has there."""
    found: list[Item] = []
    for run in runs:
        (block,) = [each for each in blocks if each.item_id(run.at) == run.first]
        assert run == block.run(run.at, run.at + run.count, run.mark)
        found += block.items(run.at, run.at + run.count, run.mark)
    return found


def is_one_run(a: Item, b: Item) -> bool:
    """Whether the second may follow the first in one run."""
    return a.block == b.block and a.position + 1 == b.position and a.mark == b.mark


def fewest_runs(items: Sequence[Item]) -> list[list[Item]]:
    """The items, in their order, as runs that cannot be joined any further."""
    runs: list[list[Item]] = []
    for item in items:
        if runs and is_one_run(runs[-1][-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


@st.composite
def blocks(draw: st.DrawFn, *, count_max: int = 3) -> list[SizedBlock]:
    """Blocks whose ids follow each other without a gap, as those of one add."""
    sizes = st.lists(st.integers(0, 1000), min_size=1, max_size=12)
    drawn = draw(st.lists(sizes, min_size=1, max_size=count_max))
    last = IdSource(Random(draw(st.integers(0, 99)))).mint_last(1, 1_700_000_000_000)
    made: list[SizedBlock] = []
    for each in drawn:
        last = ItemId((int.from_bytes(last) + len(each)).to_bytes(16))
        made.append(SizedBlock(last, each))
    return made


@st.composite
def runs_of(draw: st.DrawFn, some: Sequence[SizedBlock]) -> list[Run]:
    """Some items of the blocks, in order, in runs that are shorter than they could be."""
    runs: list[Run] = []
    for block in some:
        cuts = draw(st.sets(st.integers(1, len(block.sizes)), min_size=1))
        start = 0
        for stop in sorted(cuts):
            if draw(st.integers(0, 4)):
                runs.append(block.run(start, stop, draw(st.sampled_from(MARKS))))
            start = stop
    return runs


@st.composite
def blocks_and_runs(draw: st.DrawFn) -> tuple[list[SizedBlock], list[Run]]:
    some = draw(blocks())
    return some, draw(runs_of(some))


@st.composite
def block_and_run(draw: st.DrawFn) -> tuple[SizedBlock, Run]:
    """A run of a block, not always all of it."""
    (block,) = draw(blocks(count_max=1))
    start = draw(st.integers(0, len(block.sizes) - 1))
    stop = len(block.sizes) - draw(st.integers(0, len(block.sizes) - start - 1))
    return block, block.run(start, stop, draw(st.sampled_from(MARKS)))
