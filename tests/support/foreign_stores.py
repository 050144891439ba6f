"""Directories that hold something else than a store of ours, and proof that they did not change."""

from pathlib import Path

import rocksdict

ORIGINAL = ["available", "in_progress", "visibility_index", "leases", "lease_expiry"]
"""The column families of the original Queueber, beside `default`."""


def state_of(path: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below `path`: when it was changed, its inode, its bytes."""
    return {
        str(file.relative_to(path)): (
            file.stat().st_mtime_ns,
            file.stat().st_ino,
            file.read_bytes() if file.is_file() else b"",
        )
        for file in [path, *path.rglob("*")]
    }


def make_rocksdb(path: Path, families: list[str], entries: dict[bytes, bytes]) -> None:
    """A store as another program leaves it, so without the file that rocksdict adds."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    of_each = {name: rocksdict.Options(raw_mode=True) for name in families}
    store = rocksdict.Rdict(str(path), options, of_each)
    for key, value in entries.items():
        store.put(key, value)
    store.close()
    (path / "rocksdict-config.json").unlink()
