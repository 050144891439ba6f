"""A data directory as the original Queueber leaves it."""

from dataclasses import dataclass, field
from pathlib import Path

import rocksdict

from queueber.schema import original
from tests.support.foreign_stores import ORIGINAL


@dataclass
class Original:
    """Its items: contents, and when they are visible, or that somebody has polled them."""

    waiting: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    """By id: contents and the time, in seconds."""
    in_progress: dict[bytes, bytes] = field(default_factory=dict)
    unindexed: dict[bytes, bytes] = field(default_factory=dict)
    """Items that no entry of the index names."""

    def write(self, path: Path) -> None:
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        families = {name: _family_options() for name in ORIGINAL}
        store = rocksdict.Rdict(str(path), options, families)
        family = {name: store.get_column_family(name) for name in ORIGINAL}
        for item_id, (contents, at) in self.waiting.items():
            index_key = b"visibility_index/" + at.to_bytes(8) + b"/" + item_id
            family["available"][b"available/" + item_id] = stored(item_id, contents, index_key)
            family["visibility_index"][index_key] = b"available/" + item_id
        for item_id, contents in self.in_progress.items():
            index_key = b"visibility_index/" + bytes(8) + b"/" + item_id
            family["in_progress"][b"in_progress/" + item_id] = stored(item_id, contents, index_key)
        for item_id, contents in self.unindexed.items():
            family["available"][b"available/" + item_id] = stored(item_id, contents, b"none")
        gone = b"visibility_index/" + bytes(8) + b"/" + bytes(16)
        family["visibility_index"][gone] = b"available/" + bytes(16)
        family["leases"][b"leases/" + bytes(16)] = b"a lease"
        for each in family.values():
            each.close()
        store.close()
        (path / "rocksdict-config.json").unlink()


def _family_options() -> rocksdict.Options:
    options = rocksdict.Options(raw_mode=True)
    options.set_prefix_extractor(rocksdict.SliceTransform.create_max_len_prefix(10))
    return options


def stored(item_id: bytes, contents: bytes, index_key: bytes) -> bytes:
    item = original.StoredItem.new_message()
    item.contents, item.visibilityTsIndexKey, item.id = contents, index_key, item_id
    data: bytes = item.to_bytes()
    return data
