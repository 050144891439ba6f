"""Plain values that the layers pass to each other. No logic.

Do not change them. Those that every call builds are not frozen, because building a frozen one takes
four times as long.
"""

from queueber.model.items import (
    NO_DETAILS,
    NOTHING_POLLED,
    Added,
    FailOutcome,
    ItemColumns,
    ItemDetails,
    ItemInfo,
    ItemState,
    NewItems,
    Origin,
    Polled,
    Producer,
)
from queueber.model.loads import LoadInfo, LoadRef, LoadState, Part, PartRef, Rows, StagedFile
from queueber.model.queues import QueueSettings, ServerInfo, Stats, Sweep
from queueber.model.results import (
    ALL_COLUMNS,
    Column,
    LogStats,
    Receipt,
    Result,
    ResultColumns,
    Results,
)
from queueber.model.snapshots import SnapshotInfo, SnapshotRange

__all__ = [
    "ALL_COLUMNS",
    "NOTHING_POLLED",
    "NO_DETAILS",
    "Added",
    "Column",
    "FailOutcome",
    "ItemColumns",
    "ItemDetails",
    "ItemInfo",
    "ItemState",
    "LoadInfo",
    "LoadRef",
    "LoadState",
    "LogStats",
    "NewItems",
    "Origin",
    "Part",
    "PartRef",
    "Polled",
    "Producer",
    "QueueSettings",
    "Receipt",
    "Result",
    "ResultColumns",
    "Results",
    "Rows",
    "ServerInfo",
    "SnapshotInfo",
    "SnapshotRange",
    "StagedFile",
    "Stats",
    "Sweep",
]
