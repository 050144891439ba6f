"""Damage to any file of a store: refused with advice, or harmless; never less data; repaired."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.disk.corruption import Contents, contents_of, make_store, run_once
from tests.support.folders import quick_folder, remove_folder

DAMAGES = 30
DAMAGES_LONG = int(os.environ.get("QUEUEBER_TEST_DAMAGES", "500"))

Sound = tuple[Path, Path, Contents]


@pytest.fixture(scope="module")
def sound() -> Iterator[Sound]:
    """A folder, a store in it, and what that holds."""
    folder = quick_folder()
    left = make_store(folder)
    shutil.copytree(left, folder / "sound")
    yield folder, left, contents_of(folder / "sound")
    remove_folder(folder)


@pytest.mark.parametrize("seed", range(DAMAGES))
def test_damage_is_refused_with_advice_or_harmless_and_is_repaired(sound: Sound, seed: int) -> None:
    folder, left, contents = sound

    assert run_once(seed, left, contents, folder).failure == ""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_damages_are_refused_with_advice_or_harmless_and_are_repaired(sound: Sound) -> None:
    folder, left, contents = sound
    seeds = range(10_000, 10_000 + DAMAGES_LONG)

    outcomes = [run_once(seed, left, contents, folder) for seed in seeds]

    assert [outcome for outcome in outcomes if outcome.failure] == []
    assert {outcome.told for outcome in outcomes} == {"refused", "the same"}
