"""Kafka's jars: fetched once, and a Kafka that cannot be fetched is left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers.peer import Unavailable
from bench.topics import kafka_server
from bench.topics.kafka_server import KafkaServer

pytest.importorskip("pyspark", reason="its Ivy fetches the jars")

FakeJava = Callable[[str], Path]


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Puts a script in place of Java, which counts its calls."""
    monkeypatch.setattr(kafka_server, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    def put(script: str) -> Path:
        java, calls = tmp_path / "java", tmp_path / "calls"
        java.write_text(f"#!/bin/sh\necho called >> {calls}\n{script}\n")
        java.chmod(0o755)
        return calls

    return put


def server() -> KafkaServer:
    return KafkaServer("Kafka", "yes", "", is_synced=True)


def test_jars_are_fetched_once_and_then_kept(fake_java: FakeJava, tmp_path: Path) -> None:
    # The last argument is a pattern in the folder for the jars.
    calls = fake_java('for last; do :; done; d=$(dirname "$last"); mkdir -p "$d"; '
                      'echo jar > "$d/kafka_2.13-4.3.1.jar"')  # fmt: skip

    assert not kafka_server.are_jars_here()
    versions = [server().version(), server().version()]

    assert versions == ["4.3.1", "4.3.1"]
    assert kafka_server.are_jars_here()
    assert [each.name for each in (tmp_path / "programs").iterdir()] == ["kafka-4.3.1"]
    assert calls.read_text() == "called\n"


def test_why_jars_cannot_be_fetched_is_told(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java("echo resolving; echo no such module >&2; exit 1")

    with pytest.raises(Unavailable, match=r"^fetching Kafka 4.3.1 failed \(no such module\)$"):
        server().version()

    assert not list((tmp_path / "programs").iterdir())


def test_a_fetch_that_finds_nothing_is_told(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java("exit 0")

    with pytest.raises(Unavailable, match=r"^Ivy found no Kafka 4.3.1$"):
        server().version()

    assert not list((tmp_path / "programs").iterdir())


def test_without_java_there_is_no_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_server, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unavailable, match=r"^Kafka needs Java, which is missing$"):
        server().version()
