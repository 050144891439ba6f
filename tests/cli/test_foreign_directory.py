"""Commands on a directory that is not ours say what it is, and change nothing in it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.foreign_stores import ORIGINAL, make_rocksdb, state_of


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n")
    return folder


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A store of the original Queueber, which had no file of rocksdict."""
    make_rocksdb(tmp_path / "original", ORIGINAL, {b"available/1": b"x"})
    return tmp_path / "original"


def test_serve_among_documents_is_refused_and_changes_nothing(cli: Cli, documents: Path) -> None:
    before = state_of(documents)

    served = cli.run("serve", "--data-dir", str(documents), "--listen", "127.0.0.1:0")

    assert served.code == 5
    failed = json.loads(served.stderr.splitlines()[-1])
    assert (failed["event"], failed["reason"]) == (
        "server_failed",
        f"{documents} is neither empty nor a data directory of Queueber: it holds "
        "'guide.md'; nothing was changed; choose an empty or new directory with --data-dir",
    )
    assert "Traceback" not in served.stderr
    assert state_of(documents) == before


def test_serve_on_a_store_of_the_original_says_so_and_changes_nothing(
    cli: Cli, original: Path
) -> None:
    before = state_of(original)

    served = cli.run("serve", "--data-dir", str(original), "--listen", "127.0.0.1:0")

    assert served.code == 5
    assert "perhaps of the original Queueber" in served.stderr.splitlines()[-1]
    assert state_of(original) == before


def test_verify_of_a_store_of_the_original_says_so_and_changes_nothing(
    cli: Cli, original: Path
) -> None:
    before = state_of(original)

    verified = cli("verify", "--data-dir", str(original))

    assert (verified.code, verified.stdout) == (5, "")
    assert "perhaps of the original Queueber" in verified.stderr
    assert state_of(original) == before


def test_repair_of_a_store_of_the_original_says_so_and_makes_nothing(
    cli: Cli, original: Path, tmp_path: Path
) -> None:
    before = state_of(original)

    repaired = cli("repair", "--data-dir", str(original), "--into", str(tmp_path / "new"))

    assert (repaired.code, repaired.stdout) == (5, "")
    assert "perhaps of the original Queueber" in repaired.stderr
    assert not (tmp_path / "new").exists()
    assert state_of(original) == before


def test_repair_of_documents_is_refused_and_makes_nothing(
    cli: Cli, documents: Path, tmp_path: Path
) -> None:
    before = state_of(documents)

    repaired = cli("repair", "--data-dir", str(documents), "--into", str(tmp_path / "new"))

    assert (repaired.code, repaired.stdout) == (5, "")
    assert "it holds 'guide.md'" in repaired.stderr
    assert not (tmp_path / "new").exists()
    assert state_of(documents) == before
