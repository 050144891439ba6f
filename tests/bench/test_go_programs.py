"""Programs that Go builds: once, and a peer whose program cannot be built is left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers import go_programs
from bench.peers.go_programs import built_program, find_or_build
from bench.peers.peer import Unavailable

_MODULE = "example.org/tool"

FakeGo = Callable[[str], Path]


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """Puts a script in place of Go, which counts its calls."""
    monkeypatch.setattr(go_programs, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(go_programs, "_GO_PATH", "/nowhere")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(script: str) -> Path:
        go, calls = tmp_path / "go", tmp_path / "calls"
        go.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
        go.chmod(0o755)
        return calls

    return put


def test_a_program_is_built_once_and_then_kept(fake_go: FakeGo) -> None:
    calls = fake_go('echo built > "$GOBIN/tool"')

    assert built_program("tool", "v1.2") is None
    first = find_or_build("tool", _MODULE, "v1.2")
    second = find_or_build("tool", _MODULE, "v1.2")

    assert first == second == built_program("tool", "v1.2")
    assert first.read_text() == "built\n"
    assert [each.name for each in go_programs.PROGRAMS.iterdir()] == ["tool-v1.2"]
    assert calls.read_text() == f"install {_MODULE}@v1.2\n"


def test_another_version_is_built_beside_it(fake_go: FakeGo) -> None:
    fake_go('echo built > "$GOBIN/tool"')

    paths = {find_or_build("tool", _MODULE, version) for version in ("v1", "v2")}

    assert len(paths) == 2


def test_why_a_program_cannot_be_built_is_told(fake_go: FakeGo) -> None:
    fake_go("echo downloading >&2; echo no such module >&2; exit 1")

    with pytest.raises(Unavailable, match=r"^Go could not build tool v1 \(no such module\)$"):
        find_or_build("tool", _MODULE, "v1")

    assert not list(go_programs.PROGRAMS.iterdir())


def test_a_build_that_takes_too_long_is_given_up(
    fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go("exec sleep 60")
    monkeypatch.setattr(go_programs, "_BUILD_SECONDS_MAX", 0.1)

    with pytest.raises(Unavailable, match=r"^tool v1 was not built in 0 s$"):
        find_or_build("tool", _MODULE, "v1")

    assert not list(go_programs.PROGRAMS.iterdir())


@pytest.mark.usefixtures("fake_go")
def test_without_go_there_is_no_program() -> None:
    with pytest.raises(Unavailable, match=r"^tool v1 has to be built, and Go is missing$"):
        find_or_build("tool", _MODULE, "v1")
