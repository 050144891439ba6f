from pathlib import Path

import pytest

from queueber.db.recovery.wal import SYNCED_FILE, read_synced, write_synced
from queueber.errors import StorageCorrupt


def test_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_synced(tmp_path) == 0

    write_synced(tmp_path, 17)
    write_synced(tmp_path, 1 << 40)

    assert read_synced(tmp_path) == 1 << 40
    assert [file.name for file in tmp_path.iterdir()] == [SYNCED_FILE]


def test_note_with_a_flipped_bit_is_refused_wherever_it_is(tmp_path: Path) -> None:
    write_synced(tmp_path, 123_456)
    file = tmp_path / SYNCED_FILE
    held = file.read_bytes()

    for position in range(len(held.strip())):
        damaged = bytearray(held)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(StorageCorrupt, match="SYNCED is damaged"):
            read_synced(tmp_path)
