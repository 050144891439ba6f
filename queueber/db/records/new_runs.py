"""The runs of new items: what an add and a bulk load enter into the indexes."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from queueber.db.records.blocks import NewBlock
from queueber.db.records.runs import Mark, Run, new_mark
from queueber.ids import ItemId
from queueber.limits import PRIORITY_DEFAULT


def new_runs(
    last: ItemId,
    block: NewBlock,
    times: Sequence[int],
    priorities: Sequence[int],
    batch: int,
) -> Iterator[tuple[int, Run]]:
    """The runs of a block, each with its time: items that follow each other and have one priority.

    `last` is the last id of the block. `times` and `priorities` are those of all items of the call,
    or empty; then every time is 0, and every priority the default.
    """
    span = block.stop - block.start
    head, before = last[:8], int.from_bytes(last[8:]) - span
    marks: dict[int, Mark] = {}
    start = 0
    for count, time, priority in _alike(span, block.start, times, priorities):
        stop = start + count
        mark = marks.get(priority)
        if mark is None:
            mark = marks[priority] = new_mark(batch, priority, has_details=block.has_details)
        # `shifted` without its call: there may be a run for each item.
        its_last = ItemId(head + (before + stop).to_bytes(8))
        yield time, Run(its_last, count, start, span, block.size(start, stop), mark, last)
        start = stop


def _alike(
    span: int, start: int, times: Sequence[int], priorities: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """How many items that follow each other have one time and priority, and these."""
    if not (times or priorities):
        yield span, 0, PRIORITY_DEFAULT
        return
    of_block = slice(start, start + span)
    columns = zip(
        times[of_block] or [0] * span,
        priorities[of_block] or [PRIORITY_DEFAULT] * span,
        strict=True,
    )
    for (time, priority), alike in groupby(columns):
        yield len(list(alike)), time, priority
