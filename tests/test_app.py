"""A server that cannot start says what to change, in one error."""

import socket
from pathlib import Path

import pytest

from queueber.app import serve
from queueber.config import load_config
from queueber.errors import DataDirLocked, QueueberError
from queueber.testing import running_server


def start(data_dir: Path, listen: str = "127.0.0.1:0") -> None:
    serve(load_config({"data_dir": str(data_dir), "listen": listen}))


@pytest.fixture(autouse=True)
def _garbage_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server sets the collector for its whole process."""
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)


def test_address_that_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(QueueberError) as raised:
            start(tmp_path / "data", address)

    assert str(raised.value) == (
        f"cannot listen on {address}: the address is in use; choose another with --listen"
    )


def test_data_directory_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("mine")

    with pytest.raises(QueueberError, match=rf"^cannot use {file}: File exists$"):
        start(file)


def test_data_directory_of_another_server(tmp_path: Path) -> None:
    with running_server(data_dir=tmp_path / "data"), pytest.raises(DataDirLocked):
        start(tmp_path / "data")
