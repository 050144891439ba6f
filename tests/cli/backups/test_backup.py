"""`queueber backup` and `restore`: what they print, what they leave, what they refuse."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import queueber
from queueber.cli.durations import duration
from tests.cli.conftest import Cli, run_on_terminal
from tests.support.s3_server import s3_environment, s3_server


def test_backup_is_taken_listed_shown_verified_and_restored(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    queue.add([b"a", b"b"])
    repository, data = str(tmp_path / "repository"), str(tmp_path / "data")

    taken = cli("backup", repository)
    first = taken.stdout.split()[0]
    second = json.loads(cli("backup", repository, "--json").stdout)

    assert (taken.code, taken.stderr) == (0, "")
    assert " items, " in taken.stdout
    assert second["sentBytes"] < second["bytes"]
    listed = cli("backup", "list", repository).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["name", first, second["name"]]
    as_json = cli("backup", "list", repository, "--json").stdout.splitlines()
    assert json.loads(as_json[1]) == second
    shown = cli("backup", "show", repository, "--at", first).stdout.splitlines()
    assert shown[0].split() == ["name", first]
    assert [line.split()[0] for line in shown] == [
        "name", "taken", "server", "format", "contents", "size", "sent",
    ]  # fmt: skip
    with_files = json.loads(cli("backup", "show", repository, "--files", "--json").stdout)
    assert {"CURRENT"} < {file["name"] for file in with_files["files"]}
    verified = cli("backup", "verify", repository)
    assert (verified.code, verified.stdout.split()[:2]) == (0, [second["name"], "sound;"])

    restored = cli("restore", repository, data, "--at", first)
    assert (restored.code, restored.stderr) == (0, "")
    assert f"restored from {first}" in restored.stdout
    assert "is sound" in cli("verify", "--data-dir", data).stdout

    again = cli("restore", repository, data)
    assert (again.code, again.stdout) == (2, "")
    assert "is not empty" in again.stderr


def test_keep_and_prune_delete_the_oldest(cli: Cli, tmp_path: Path) -> None:
    repository = str(tmp_path / "repository")
    names = [json.loads(cli("backup", repository, "--json").stdout)["name"] for _ in range(2)]

    kept = cli("backup", repository, "--keep", "2")
    pruned = cli("backup", "prune", repository, "--keep", "1")

    third = kept.stdout.split()[0]
    assert kept.stdout.splitlines()[1:] == [f"{names[0]}  deleted"]
    assert pruned.stdout == f"{names[1]}  deleted\n"
    assert [line.split()[0] for line in cli("backup", "list", repository).stdout.splitlines()] == [
        "name",
        third,
    ]


def test_damage_is_told_and_ends_with_1_and_restore_with_5(cli: Cli, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    cli("backup", str(repository))
    manifest = next(repository.glob("backups/*/MANIFEST-*"))
    manifest.write_bytes(bytes(manifest.stat().st_size))

    verified = cli("backup", "verify", str(repository))
    restored = cli("restore", str(repository), str(tmp_path / "data"))

    assert verified.code == 1
    assert "its checksum is another one" in verified.stdout
    assert (restored.code, restored.stdout) == (5, "")
    assert "its checksum is another one" in restored.stderr
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("backup", "list", "none"), "there is no directory none"),
        (("backup", "show", "none"), "there is no directory none"),
        (("restore", "none", "data"), "there is no directory none"),
        (("backup", "ftp://somewhere"), "ftp://somewhere"),
        (("backup", "here", "--every", "5 weeks"), "not a length of time such as"),
        (("backup", "here", "--keep", "0"), "--keep"),
    ],
)
def test_wrong_usage_is_told(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    told = cli(*arguments)

    assert (told.code, told.stdout) == (2, "")
    assert words in told.stderr


def test_backup_without_a_server_ends_with_3(tmp_path: Path) -> None:
    told = Cli()("backup", str(tmp_path / "repository"), "--connect-timeout", "0.1")

    assert (told.code, told.stdout) == (3, "")


def test_help_of_backup_has_the_flags_of_taking_one(cli: Cli) -> None:
    told = cli("backup", "--help").stdout

    assert all(word in told for word in ("--every", "--keep", "--address", "list", "verify"))


def test_progress_is_shown_on_a_terminal(cli: Cli, tmp_path: Path) -> None:
    code, stdout, shown = run_on_terminal(cli, "backup", str(tmp_path / "repository"))

    assert code == 0
    assert b"backing up" in shown
    assert b"were sent" in stdout


@pytest.mark.slow
def test_backup_every_now_and_then_survives_failures(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    process = cli.start("backup", str(repository), "--every", "1s", "--keep", "2", "--json")
    try:
        assert process.stdout is not None
        lines: list[dict[str, str]] = []
        while len(lines) < 6:
            lines.append(json.loads(process.stdout.readline()))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    names = [line["name"] for line in lines if "name" in line]
    deleted = [line["deleted"] for line in lines if "deleted" in line]
    assert len(names) == 4
    assert deleted == names[:2]


@pytest.mark.slow
def test_scheduled_backup_without_a_server_goes_on_trying(tmp_path: Path) -> None:
    process = Cli().start(
        "backup", str(tmp_path / "repository"), "--every", "10s", "--connect-timeout", "0.1"
    )
    try:
        time.sleep(4)
        assert process.poll() is None
    finally:
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert told.decode().count("trying again later") >= 2


@pytest.mark.slow
def test_backup_in_a_bucket(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    queue.add([b"a"])
    with s3_server() as bucket:
        environment = {**os.environ, **s3_environment(bucket), "QUEUEBER_ADDRESS": cli.address}

        def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run(
                [sys.executable, "-m", "queueber", *arguments],
                env=environment, capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip

        taken = run("backup", "s3://b/nightly")
        again = run("backup", "s3://b/nightly", "--keep", "1")
        assert (taken.returncode, taken.stderr) == (0, "")
        assert again.stdout.splitlines()[1] == f"{taken.stdout.split()[0]}  deleted"
        assert len(run("backup", "list", "s3://b/nightly").stdout.splitlines()) == 2
        restored = run("restore", "s3://b/nightly", str(tmp_path / "data"))
        assert (restored.returncode, restored.stderr) == (0, "")
        assert "lock" not in {key.rpartition("/")[2] for key in bucket.objects}
    assert "is sound" in cli("verify", "--data-dir", str(tmp_path / "data")).stdout


def test_lengths_of_time_are_read() -> None:
    assert [duration(text) for text in ("30s", "10min", "10m", "1h", "7d", "2 h", "1w")] == [
        30, 600, 600, 3600, 604_800, 7200, 604_800,
    ]  # fmt: skip
