"""The Spark session of a job: started without its log on the terminal, stopped at the end."""

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from queueber.spark.jobs.faults import SparkFailed, what_failed
from queueber.spark.jobs.settings import SparkSettings

_SETTINGS = {
    # The command shows its own progress.
    "spark.ui.showConsoleProgress": "false",
    # Nobody opens a web page that lives for a minute.
    "spark.ui.enabled": "false",
}


@contextlib.contextmanager
def spark_session(name: str, settings: SparkSettings) -> Iterator[SparkSession]:
    """A session with the data source registered. Errors of Spark are raised as one sentence.

    A session that the program has already is used, and stays open.

    Spark writes its log to standard error. Here it goes to a file, which is kept, and named in the
    error, when the job fails. Under spark-submit, Spark runs before this program does and logs
    where it is configured to.
    """
    # These log the errors that they raise, too.
    for noisy in ("DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    # Without this Spark takes the first python3 of the PATH, which may not have Queueber.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_ours = SparkSession.getActiveSession() is None
    log_file = _log_file()
    try:
        with _stderr_into(log_file):
            session = _start(name, settings)
        try:
            yield session
        finally:
            if is_ours:
                session.stop()
    except Exception as error:
        failure = what_failed(error)
        if failure is None:
            raise
        if isinstance(failure, SparkFailed) and log_file is not None:
            kept, log_file = log_file, None
            raise SparkFailed(f"{failure}; its log is in {kept}") from error
        raise failure from error
    finally:
        if log_file is not None:
            log_file.unlink(missing_ok=True)


def _start(name: str, settings: SparkSettings) -> SparkSession:
    from queueber.spark.source import QueueberDataSource

    builder = SparkSession.builder.appName(name)
    if settings.master is not None:
        builder = builder.master(settings.master)
    for key, value in {**_SETTINGS, **settings.conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.dataSource.register(QueueberDataSource)
    return session


def _log_file() -> Path | None:
    """None when spark-submit started this process: then Spark runs already."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    number, path = tempfile.mkstemp(prefix="queueber-spark-", suffix=".log")
    os.close(number)
    return Path(path)


@contextlib.contextmanager
def _stderr_into(log_file: Path | None) -> Iterator[None]:
    """Processes that are started meanwhile keep the file as their standard error."""
    if log_file is None:
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    opened = os.open(log_file, os.O_WRONLY | os.O_APPEND)
    try:
        os.dup2(opened, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
        os.close(opened)
