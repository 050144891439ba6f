"""Repositories whose files somebody has moved or changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from queueber.backup.directory import DirectoryStorage
from queueber.backup.manifest import encode
from queueber.backup.repository import Repository
from queueber.errors import StorageCorrupt
from tests.backup.test_manifest import MANIFEST

LATER = "2026-11-18T00-00-00Z"


@pytest.mark.parametrize("name", ["..", "../..", "", LATER])
def test_manifest_with_the_name_of_something_else_deletes_nothing(
    tmp_path: Path, name: str
) -> None:
    others = tmp_path / "others" / "file"
    others.parent.mkdir()
    others.write_text("kept")
    repository = Repository(DirectoryStorage(tmp_path / "repository"))
    repository.add(replace(MANIFEST, name=LATER))
    path = repository.own_path(MANIFEST.name, "backup.json")
    repository.storage.write(path, [encode(replace(MANIFEST, name=name))])

    with repository.lock(), pytest.raises(StorageCorrupt, match="is that of the backup"):
        repository.prune(1)

    assert others.read_text() == "kept"
    assert repository.names() == [MANIFEST.name, LATER]
