from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from tests.support.folders import quick_folder, remove_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    made = quick_folder()
    yield made
    remove_folder(made)


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with RocksStore(folder / "data") as opened:
        yield opened
