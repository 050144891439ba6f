"""The runs of new items: what an add and a bulk load enter into the indexes."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from queueber.db.records.blocks import NewBlock
from queueber.db.records.runs import Mark, Run, new_mark
from queueber.ids import ItemId
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import NO_OPTIONS, ItemOptions


def new_runs(
    last: ItemId,
    block: NewBlock,
    times: Sequence[int],
    priorities: Sequence[int],
    batch: int,
    options: Sequence[ItemOptions] = (),
) -> Iterator[tuple[int, Run]]:
    """The runs of a block, each with its time: items that follow each other and have one mark.

    `last` is the last id of the block. `times`, `priorities` and `options` are those of all items
    of the call, or empty; then every time is 0, every priority the default, and no item has
    options.
    """
    span = block.stop - block.start
    if not (times or priorities or options):  # as mostly
        of_all = new_mark(batch, PRIORITY_DEFAULT, has_details=block.has_details)
        yield 0, Run(last, span, 0, span, block.size(0, span), of_all, last)
        return
    head, before = last[:8], int.from_bytes(last[8:]) - span
    marks: dict[tuple[int, bool, bool], Mark] = {}
    start = 0
    alike = _alike(span, block.start, times, priorities, options)
    for count, time, priority, has_options, expires in alike:
        stop = start + count
        mark = marks.get((priority, has_options, expires))
        if mark is None:
            mark = marks[priority, has_options, expires] = new_mark(
                batch,
                priority,
                has_details=block.has_details,
                has_options=has_options,
                expires=expires,
            )
        # `shifted` without its call: there may be a run for each item.
        its_last = ItemId(head + (before + stop).to_bytes(8))
        yield time, Run(its_last, count, start, span, block.size(start, stop), mark, last)
        start = stop


def _alike(
    span: int,
    start: int,
    times: Sequence[int],
    priorities: Sequence[int],
    options: Sequence[ItemOptions],
) -> Iterator[tuple[int, int, int, bool, bool]]:
    """How many items that follow each other have one time and priority, these, and whether they
    have options, and expire."""
    of_block = slice(start, start + span)
    columns = zip(
        times[of_block] or [0] * span,
        priorities[of_block] or [PRIORITY_DEFAULT] * span,
        [each != NO_OPTIONS for each in options[of_block]] or [False] * span,
        [each.expires_ms > 0 for each in options[of_block]] or [False] * span,
        strict=True,
    )
    for (time, priority, has_options, expires), alike in groupby(columns):
        yield len(list(alike)), time, priority, has_options, expires
