"""Servers that npm and cargo install: once, and one that cannot be installed is left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers.peer import Unavailable
from bench.streams import programs
from bench.streams.programs import cargo_folder, is_here, npm_folder

FakeTool = Callable[[str, str], Path]


@pytest.fixture
def fake_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    """Puts a script in place of npm or cargo, which records its arguments."""
    monkeypatch.setattr(programs, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(programs, "_CARGO_PATH", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    def put(name: str, script: str) -> Path:
        tool, calls = tmp_path / name, tmp_path / "calls"
        tool.write_text(f'#!/bin/sh\necho "$CARGO_PROFILE_RELEASE_LTO $@" >> {calls}\n{script}\n')
        tool.chmod(0o755)
        return calls

    return put


def test_packages_are_installed_once_and_then_kept(fake_tool: FakeTool, tmp_path: Path) -> None:
    calls = fake_tool("npm", 'mkdir "$3/node_modules"')

    assert not is_here("server-1")
    folders = [npm_folder("server-1", ["server@1", "other@2"]) for _ in range(2)]

    assert folders == [tmp_path / "programs" / "server-1"] * 2
    assert is_here("server-1")
    assert (folders[0] / "node_modules").is_dir()
    assert len(calls.read_text().splitlines()) == 1
    assert calls.read_text().endswith(" --ignore-scripts --save-exact server@1 other@2\n")


def test_crate_is_built_without_optimisation_at_link_time(
    fake_tool: FakeTool, tmp_path: Path
) -> None:
    calls = fake_tool("cargo", 'mkdir "$4/bin" "$6"')

    folder = cargo_folder("server-1", "server", "1.2")

    assert [each.name for each in folder.iterdir()] == ["bin"]
    assert calls.read_text().startswith("off install --locked --root ")
    assert calls.read_text().endswith(" --version 1.2 server\n")


def test_why_a_server_cannot_be_installed_is_told(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool("npm", "echo fetching >&2; echo no such package >&2; exit 1")

    with pytest.raises(Unavailable, match=r"^npm could not install server-1 \(no such package\)$"):
        npm_folder("server-1", ["server@1"])

    assert not list((tmp_path / "programs").iterdir())


def test_an_installation_that_takes_too_long_is_given_up(
    fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tool("cargo", "exec sleep 60")
    monkeypatch.setattr(programs, "_INSTALL_SECONDS_MAX", 0.1)

    with pytest.raises(Unavailable, match=r"^server-1 was not installed in 0 s$"):
        cargo_folder("server-1", "server", "1.2")

    assert not list((tmp_path / "programs").iterdir())


@pytest.mark.usefixtures("fake_tool")
def test_without_the_tool_there_is_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unavailable, match=r"^server-1 is installed with npm, which is missing$"):
        npm_folder("server-1", ["server@1"])
