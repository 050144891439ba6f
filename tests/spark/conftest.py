"""A server and a Spark for all tests on Spark, which are skipped where there is no Java."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import queueber
from queueber.testing import ServerProcess, running_server
from tests.support.spark_driver import WARM, spark_environment, why_no_spark
from tests.support.spark_sink import Sink
from tests.support.warm import warm_programs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is below this folder; hooks of a conftest are given the tests of all folders."""
    reason = why_no_spark()
    for item in items:
        if "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """In this process, with two threads for tasks: one for all, for it takes seconds to start.

    It starts a Python for each plan and each task, which are forks of one that has imported it all.
    """
    from queueber.spark.source import QueueberDataSource

    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch, warm_programs(*WARM) as programs:
        conf = {
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.python.filterPushdown.enabled": "true",
        }
        for name, value in spark_environment(folder, conf=conf).items():
            patch.setenv(name, value)
        patch.setenv("PYSPARK_PYTHON", str(programs / "python"))
        session = SparkSession.builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        session.dataSource.register(QueueberDataSource)
        yield session
        session.stop()


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server() as started:
        yield started


@pytest.fixture(scope="package")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


_numbers = itertools.count(1)


@pytest.fixture
def queue(client: queueber.Client) -> queueber.Queue:
    """A queue that no other test uses."""
    name = f"queue-{next(_numbers)}"
    client.create_queue(name)
    return client.queue(name)


@pytest.fixture
def sink(server: ServerProcess, queue: queueber.Queue) -> Sink:
    """The same queue, for Spark to write to."""
    return Sink(server, queue)


@pytest.fixture
def topic(client: queueber.Client) -> queueber.Topic:
    """A topic with two partitions that no other test uses."""
    name = f"topic-{next(_numbers)}"
    client.create_topic(name, partitions=2)
    return client.topic(name)
