"""What Spark raises: whose mistake it is, in one sentence."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queueber.errors import InvalidArgument
from queueber.spark.jobs.faults import SparkFailed, what_failed
from queueber.spark.jobs.session import spark_session
from queueber.spark.jobs.settings import SparkSettings
from queueber.testing import ServerProcess
from tests.support.spark_driver import ROOT


def test_an_error_of_ours_comes_back_as_itself(spark: SparkSession, server: ServerProcess) -> None:
    rows = spark.range(1).selectExpr("'a' AS contents", "1 AS colour")
    options = {"address": server.address, "queue": "never"}

    with (
        pytest.raises(InvalidArgument, match="colour") as raised,
        spark_session("test", SparkSettings()),
    ):
        rows.write.format("queueber").options(**options).mode("append").save()

    assert "\n" not in str(raised.value)


def test_what_a_task_raises_is_named_and_is_not_the_users(spark: SparkSession) -> None:
    def fail(rows: Iterable[object]) -> Iterable[object]:
        raise ZeroDivisionError("no task can do this")

    with (
        pytest.raises(SparkFailed, match="ZeroDivisionError: no task can do this") as raised,
        spark_session("test", SparkSettings()),
    ):
        spark.range(1).rdd.mapPartitions(fail).count()

    assert "\n" not in str(raised.value)
    # Spark runs on: it was there before.
    assert spark.range(3).count() == 3
    _remove_log(str(raised.value))


def test_other_errors_pass_through() -> None:
    assert what_failed(ValueError("not of Spark")) is None


def test_without_java_the_command_says_what_to_install(
    server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = ["spark", "enqueue", "a.txt", "--address", server.address, "-q", "no-java"]

    ended = subprocess.run(
        [sys.executable, "-m", "queueber", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 4
    assert "it needs Java 17 or newer: install openjdk-17-jre-headless" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "java: No such file" in _remove_log(ended.stderr)


def _remove_log(message: str) -> str:
    """The log that the message names; returns what it says."""
    named = re.search(r"its log is in (\S+)", message)
    assert named, message
    log_file = Path(named[1])
    told = log_file.read_text()
    log_file.unlink()
    return told
