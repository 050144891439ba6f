from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.db.store import Store
from tests.support.folders import quick_folder, remove_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    made = quick_folder()
    yield made
    remove_folder(made)


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with Store(folder / "data") as opened:
        yield opened
