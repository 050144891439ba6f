"""Which format input files have, by their names. Needs no Spark, so a wrong name fails at once."""

from collections.abc import Sequence
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
