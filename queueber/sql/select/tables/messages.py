"""topic('name'): its messages, up to where each partition ended when the statement began."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pyarrow as pa

from queueber.client import AsyncTopic
from queueber.limits import MIB
from queueber.model import Column, Position, Start, TopicInfo
from queueber.sql.select.columns import sent_columns
from queueber.sql.select.needs import Need
from queueber.tables.messages import messages_page, unwanted_columns

_PAGE_MESSAGES = 4096
_PAGE_BYTES = MIB
"""Of one read: what is turned into rows at once, on the loop that others wait for."""
_NO_COLUMNS = (Column.CONTENTS, Column.KEYS, Column.ATTRIBUTES)


@dataclass(slots=True)
class _Stretch:
    partition: int
    first: int
    end: int


class Messages:
    def __init__(self, topic: AsyncTopic, info: TopicInfo, need: Need) -> None:
        self._topic = topic
        self._info = info
        self._need = need
        self._names = sent_columns(need.kind, need.columns)

    async def stretches(self) -> list[_Stretch]:
        """What is to be read: between offsets, and between the offsets of times."""
        found = []
        for partition, reach in enumerate(self._info.partitions):
            if not self._is_wanted(partition):
                continue
            first = max(reach.first_offset, self._need.least.get("offset", 0))
            end = min(reach.next_offset, self._need.most.get("offset", reach.next_offset) + 1)
            # Messages have whole milliseconds: one more on both sides, and nothing is missed.
            if first < end and (at_us := self._need.least.get("ts")) is not None:
                first = max(first, await self._offset_at(partition, at_us // 1000 - 1))
            if first < end and (at_us := self._need.most.get("ts")) is not None:
                end = min(end, await self._offset_at(partition, at_us // 1000 + 2))
            if first < end:
                found.append(_Stretch(partition, first, end))
        return self._shortened(found)

    def _shortened(self, found: list[_Stretch]) -> list[_Stretch]:
        """With the last messages alone, where those are enough."""
        need = self._need
        has_gaps = self._info.config.settings.keeps_last_per_key
        if need.rows is not None and need.is_last and not has_gaps:
            for each in found:
                each.first = max(each.first, each.end - need.rows)
        return found

    def rows_at_least(self, stretches: list[_Stretch]) -> int:
        """How many rows will be read, as far as that is known before."""
        if self._info.config.settings.keeps_last_per_key or self._need.rows is not None:
            return 0
        return sum(each.end - each.first for each in stretches)

    async def pages(self, stretches: list[_Stretch]) -> AsyncIterator[pa.RecordBatch]:
        need = self._need
        left = need.rows
        for stretch in stretches:
            if need.is_each:
                left = None if need.is_last else need.rows
            async for batch in self._of(stretch, left):
                yield batch
                left = None if left is None else left - batch.num_rows
            if left is not None and left <= 0 and not need.is_each:
                return

    async def _of(self, stretch: _Stretch, left: int | None) -> AsyncIterator[pa.RecordBatch]:
        names = [_STORED.get(name, name) for name in self._names]
        without = unwanted_columns(names)
        at = stretch.first
        while at < stretch.end and left != 0:
            page = await self._topic.read(
                stretch.partition,
                # Messages that were deleted meanwhile are left out, as those before them are.
                start=Position(Start.OFFSET, at, moves=True),
                end_offset=stretch.end,
                limit=min(_PAGE_MESSAGES, _PAGE_MESSAGES if left is None else left),
                bytes=_PAGE_BYTES,
                without=without,
            )
            if len(page):
                batch = messages_page(page.columns, names)
                yield batch.rename_columns(self._names)
                left = None if left is None else left - len(page)
            elif page.next_offset <= at:
                return
            at = page.next_offset

    def _is_wanted(self, partition: int) -> bool:
        need, chosen = self._need, self._need.numbers("partition")
        return (
            (chosen is None or partition in chosen)
            and partition >= need.least.get("partition", 0)
            and partition <= need.most.get("partition", partition)
        )

    async def _offset_at(self, partition: int, at_ms: int) -> int:
        """The offset of the first message that was published then or later."""
        position = Position(Start.TIME, min(max(0, at_ms), _TIME_MAX_MS))
        page = await self._topic.read(partition, start=position, limit=1, without=_NO_COLUMNS)
        return page.columns.pieces[0].offset if len(page) else page.next_offset


_STORED = {"ts": "timestamp"}
_TIME_MAX_MS = 1 << 48
