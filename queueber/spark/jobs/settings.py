"""What a job is told: its input, and how to start Spark. Needs no Spark itself.

So a wrong name of a file, for example, is an error before Spark starts, which takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from queueber.errors import InvalidArgument

FORMATS = ("parquet", "json", "csv", "text")

_SUFFIXES = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".txt": "text",
    ".text": "text",
    ".log": "text",
}
_COMPRESSED = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}


def format_of(paths: Sequence[str]) -> str:
    """The format that the suffixes of all paths say."""
    found = {_suffix(path): path for path in paths}
    unknown = [path for suffix, path in found.items() if suffix not in _SUFFIXES]
    if unknown:
        raise InvalidArgument(
            f"format: {unknown[0]!r} does not end in a known suffix; give the format of the "
            f"input: {', '.join(FORMATS)}"
        )
    formats = sorted({_SUFFIXES[suffix] for suffix in found})
    if len(formats) > 1:
        raise InvalidArgument(
            f"format: the input is {' and '.join(formats)}; a job reads files of one format"
        )
    return formats[0]


def _suffix(path: str) -> str:
    """Of a file, a folder, or a pattern such as `logs/*.json.gz`; in lower case."""
    name = PurePosixPath(path.lower().rstrip("/"))
    return PurePosixPath(name.stem).suffix if name.suffix in _COMPRESSED else name.suffix


@dataclass(frozen=True, slots=True)
class Input:
    """The files to read, and which of their columns makes what of an item; None: no column."""

    paths: Sequence[str]
    format: str | None = None
    """None: the names of the files say it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """For Spark's reader; they override ours."""
    contents_column: str | None = None
    """None: the column "contents"; without one the line of a text file, or the row as JSON."""
    key_column: str | None = None
    priority_column: str | None = None
    delay_column: str | None = None
    """In seconds."""
    visible_at_column: str | None = None
    attributes_column: str | None = None
    priority: int | None = None
    """Of all rows."""
    delay_seconds: float | None = None
    """Of all rows."""

    @property
    def format_name(self) -> str:
        return self.format or format_of(self.paths)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str | None = None
    """None: what spark-submit or Spark's own settings say."""
    conf: Mapping[str, str] = field(default_factory=dict)
