"""A log as a plain list of blocks, and a real one beside it."""

from dataclasses import dataclass, field

from queueber.db.store.contract import Store
from queueber.engine.log import Log
from tests.support.operations import append

ROW_OVERHEAD = 4
LARGE = 1 << 40


def row_bytes(rows: list[bytes]) -> int:
    return sum(len(row) + ROW_OVERHEAD for row in rows)


@dataclass(frozen=True)
class BlockModel:
    first: int
    at_ms: int
    rows: list[bytes]

    @property
    def end(self) -> int:
        return self.first + len(self.rows)


@dataclass
class LogModel:
    """What a log should hold and answer, told in the simplest way."""

    blocks: list[BlockModel] = field(default_factory=list)
    end: int = 0
    last_ms: int = 0
    readers: dict[str, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.blocks[0].first if self.blocks else self.end

    def append(self, rows: list[bytes], now_ms: int) -> None:
        if not rows:
            return
        self.last_ms = max(self.last_ms, now_ms)
        self.blocks.append(BlockModel(self.end, self.last_ms, rows))
        self.end += len(rows)

    def read(self, offset: int, rows_max: int, bytes_max: int) -> list[tuple[int, bytes]]:
        """The time and contents of each row."""
        every = [
            (block.at_ms, row)
            for block in self.blocks
            for number, row in enumerate(block.rows, block.first)
            if number >= offset
        ]
        found = every[:1]
        for at_ms, row in every[1:rows_max]:
            if row_bytes([each for _, each in found]) + row_bytes([row]) > bytes_max:
                break
            found.append((at_ms, row))
        return found

    def acknowledge(self, reader: str, offset: int) -> None:
        self.readers[reader] = max(offset, self.readers.get(reader, 0))

    def trim(self, now_ms: int, age_ms: int, bytes_max: int) -> int:
        before = self.first
        while self.blocks and self._goes(self.blocks[0], now_ms, age_ms, bytes_max):
            del self.blocks[0]
        return self.first - before

    def _goes(self, block: BlockModel, now_ms: int, age_ms: int, bytes_max: int) -> bool:
        is_done = bool(self.readers) and all(at >= block.end for at in self.readers.values())
        is_old = age_ms > 0 and block.at_ms + age_ms <= now_ms
        newer = sum(row_bytes(each.rows) for each in self.blocks if each.first > block.first)
        return is_done or is_old or 0 < bytes_max <= newer


def append_rows(store: Store, log: Log, rows: list[bytes], now_ms: int = 0) -> None:
    append(store, log, rows, now_ms)
