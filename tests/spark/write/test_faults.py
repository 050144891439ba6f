"""Tasks, drivers and servers that fail in the middle of a write leave exactly what they should."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import queueber
from queueber.model import LoadState, PartRef
from queueber.spark import QueueberDataSource
from queueber.spark.options import WriteOptions
from queueber.spark.write.task import find
from queueber.spark.write.writers import BatchWriter
from queueber.testing import ServerProcess, running_server
from tests.support.spark_driver import CLUSTER, LOCAL, running_driver
from tests.support.spark_sink import Gate, Sink, staged_files, wait_until

QUICK_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.interval": "100ms",
}


def texts(rows: int) -> list[bytes]:
    return sorted(str(number).encode() for number in range(rows))


def polled(queue: queueber.Queue) -> list[bytes]:
    """Everything that workers get."""
    found = []
    while lease := queue.poll(1000):
        found += [item.contents for item in lease]
        lease.remove()
    return sorted(found)


def assert_exactly(sink: Sink, expected: list[bytes]) -> None:
    """These rows, each once; the receipt counts them; nothing else is left of the write."""
    found = polled(sink.queue)
    assert Counter(found) - Counter(expected) == Counter(), "there are more"
    assert Counter(expected) - Counter(found) == Counter(), "some are missing"
    receipt = sink.queue.receipt("b")
    assert (receipt.added, receipt.done, receipt.complete) == (len(expected), len(expected), True)
    assert receipt.added_digest == receipt.done_digest
    assert sink.queue.stats().added_total == len(expected)
    assert sink.queue.loads() == []


@pytest.mark.slow
def test_failing_tasks_of_a_cluster_leave_exactly_the_rows(
    server: ServerProcess, client: queueber.Client, tmp_path: Path
) -> None:
    """Retried half-way, run twice at once, given up: in one cluster, for it takes long to start."""
    with running_driver(
        "write_faults",
        server.address,
        str(tmp_path),
        folder=tmp_path,
        master=CLUSTER,
        conf={**QUICK_BATCHES, **SPECULATION},
        timeout=240,
    ) as driver:
        seen = driver.wait().answer

    cannot = "ValueError: a row that cannot be made"
    assert seen == {
        "retry-bulk": "", "speculate-bulk": "", "retry-rpc": "", "speculate-rpc": "",
        "abort-bulk": cannot,
    }  # fmt: skip
    for name in ("retry-bulk", "retry-rpc", "speculate-bulk", "speculate-rpc"):
        assert_exactly(Sink(server, client.queue(name)), texts(36_000))
    sink = Sink(server, client.queue("abort-bulk"))
    with pytest.raises(queueber.NotFound, match="knows no batch 'b'"):
        sink.queue.receipt("b")
    sink.assert_untouched()
    wait_until(lambda: staged_files(server) == [])


@pytest.mark.slow
@pytest.mark.parametrize(("master", "stage_timeout"), [(CLUSTER, 5), (LOCAL, 3600)])
def test_killed_driver_leaves_nothing_and_its_write_can_be_repeated(
    spark: SparkSession, sink: Sink, tmp_path: Path, master: str, stage_timeout: int
) -> None:
    """When its time is up, or before: then who repeats it finds the parts, and does not mind."""
    with running_driver(
        "write_and_hold",
        sink.server.address,
        sink.queue.name,
        str(stage_timeout),
        folder=tmp_path,
        master=master,
        conf=QUICK_BATCHES,
    ) as driver:
        wait_until(lambda: [load.rows for load in sink.queue.loads()] == [2000])
        assert len(list(sink.server.data_dir.glob("loads/*/*/*.sst"))) > 0
        driver.kill()

    receipt = sink.queue.receipt("b")
    assert (receipt.added, receipt.complete) == (0, False)
    assert (sink.contents(), sink.queue.stats().added_total) == ([], 0)
    if stage_timeout < 60:
        wait_until(lambda: sink.queue.loads() == [])
        sink.assert_untouched()
    else:
        assert [load.rows for load in sink.queue.loads()] == [2000]

    rows = spark.range(0, 4000, 1, 2).selectExpr("string(id) AS contents")
    sink.write(rows, write_id="monday", batch="b")
    sink.write(rows, write_id="monday", batch="b")

    assert_exactly(sink, texts(4000))
    sink.wait_settled()


def test_task_that_comes_after_the_abort_does_not_begin_the_load_again(sink: Sink) -> None:
    """Tasks may run on for a while when their job is given up; nobody would end what they begin."""
    options = {"address": sink.server.address, "queue": sink.queue.name, "batch": "b"}
    writer = QueueberDataSource(options).writer(StructType().add("contents", "string"), False)
    assert isinstance(writer, BatchWriter)
    (begun,) = sink.queue.loads()
    rows = pa.record_batch({"contents": pa.array(["late"])})
    writer.abort([])

    with pytest.raises(queueber.NotFound, match="aborted"):
        writer._loading.stage(begun.ref, PartRef(0, "late"), iter([rows]))

    sink.assert_untouched()


def test_task_finds_its_load_by_name_and_does_not_list_all(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks again at every heartbeat, and a queue may have a hundred loads under way."""
    begun = sink.queue.load("write", batch="b")
    options = WriteOptions(sink.server.address, sink.queue.name, "b")
    monkeypatch.delattr(queueber.Queue, "loads")

    assert find(sink.queue, begun.ref, options).facts.id_head == begun.facts.id_head
    begun.commit([])
    with pytest.raises(queueber.NotFound, match=r"'write' is not under way .* 'stage_timeout'"):
        find(sink.queue, begun.ref, options)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Sink]:
    """A queue of a server of its own, whose store is checked at the end."""
    data_dir = tmp_path / "data"
    with running_server(data_dir=data_dir) as server, queueber.connect(server.address) as client:
        yield Sink(server, client.queue("q"))
    checked = subprocess.run(
        [sys.executable, "-m", "queueber", "verify", "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def keyed(spark: SparkSession, rows: int) -> DataFrame:
    """Every column, and a tenth of the rows twice: a commit with all that there can be to do."""
    return spark.range(0, rows, 1, 3).selectExpr(
        f"string(id % {rows * 9 // 10}) AS contents",
        f"concat('key ', id % {rows * 9 // 10}) AS key",
        "int(id % 10) AS priority",
        "if(id % 7 = 0, 1, 0) AS delay_ms",
    )


@pytest.mark.slow
@pytest.mark.recovery
@pytest.mark.parametrize("delay_ms", [0, pytest.param(50, marks=pytest.mark.long)])
def test_server_killed_during_commit_finishes_it_when_it_is_back(
    spark: SparkSession, mortal: Sink, tmp_path: Path, delay_ms: int
) -> None:
    """Wherever the commit was: the driver asks again, and all of the rows are there, once."""
    gate = Gate(tmp_path, 2)
    rows = 60_000

    def kill() -> None:
        gate.open()
        wait_until(lambda: [load.rows for load in mortal.queue.loads()] == [rows])
        staging = LoadState.STAGING
        wait_until(lambda: [load.state for load in mortal.queue.loads()] != [staging], pause=0)
        # A moment within the commit: no signal tells how far it is.
        time.sleep(delay_ms / 1000)
        mortal.server.kill()
        mortal.server.start()

    with gate.watched(kill) as killed:
        mortal.write(gate.hold(keyed(spark, rows)), batch="b")

    killed.result()
    wait_until(lambda: mortal.queue.stats().delayed == 0)
    assert mortal.queue.stats().duplicates_total == rows // 10
    assert_exactly(mortal, texts(rows * 9 // 10))
    mortal.wait_settled()


@pytest.mark.slow
@pytest.mark.recovery
@pytest.mark.parametrize(
    "options", [{"method": "rpc"}, {"transfer": "auto"}, {"transfer": "stream"}], ids=str
)
def test_server_killed_while_tasks_stage_does_not_disturb_the_write(
    spark: SparkSession, mortal: Sink, tmp_path: Path, options: dict[str, str]
) -> None:
    """What was staged or added is there when it is back; tasks that were cut off send again."""
    gate = Gate(tmp_path, 1)

    def kill() -> None:
        if options.get("method") == "rpc":
            wait_until(lambda: mortal.queue.stats().ready == 1000)
        else:
            wait_until(lambda: [load.rows for load in mortal.queue.loads()] == [1000])
        mortal.server.kill()
        mortal.server.start()

    with gate.watched(kill) as killed:
        rows = spark.range(0, 2000, 1, 2).selectExpr("string(id) AS contents")
        mortal.write(gate.hold(rows), batch="b", **options)

    killed.result()
    assert_exactly(mortal, texts(2000))
    mortal.wait_settled()


@pytest.mark.long
@pytest.mark.recovery
def test_server_that_stays_away_fails_the_write_as_a_whole(
    spark: SparkSession, mortal: Sink, tmp_path: Path
) -> None:
    """The driver cannot abort either; when the server is back, the stage runs out."""
    gate = Gate(tmp_path, 1)

    def kill() -> None:
        wait_until(lambda: [load.rows for load in mortal.queue.loads()] == [1000])
        mortal.server.kill()

    rows = spark.range(0, 2000, 1, 2).selectExpr("string(id) AS contents")
    with gate.watched(kill) as killed, pytest.raises(Exception, match="Unavailable"):
        mortal.write(gate.hold(rows), batch="b", stage_timeout=5)
    killed.result()
    mortal.server.start()

    wait_until(lambda: mortal.queue.loads() == [])
    mortal.assert_untouched()
