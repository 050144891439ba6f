"""The recipe for Airflow: a DAG fans out, a sensor waits for the receipt, and all of it is run."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import queueber
from queueber.testing import running_server
from tests.test_architecture import ROOT

PAGE = (ROOT / "docs" / "how-to" / "airflow.md").read_text()
FILE = re.compile(r'^```python title="([\w./]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
AIRFLOW = Path(sys.executable).with_name("airflow")


def airflow(folder: Path, address: str, *arguments: str) -> str:
    ended = subprocess.run(
        [AIRFLOW, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=200, check=False,
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(ROOT),
            "QUEUEBER_ADDRESS": address,
        },
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_dag_fans_out_and_goes_on_when_its_batch_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in FILE.findall(PAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_queue("pictures", attempts_max=1)
        worker = queueber.Worker(
            server.address, queue="pictures", handler="pictures:shrink", progress=False
        )
        working = threading.Thread(target=worker.run)
        working.start()
        try:
            airflow(tmp_path, server.address, "db", "migrate")
            told = airflow(tmp_path, server.address, "dags", "test", "thumbnails")
        finally:
            worker.stop()
            working.join(30)
        (batch,) = client.queue("pictures").batches().batches

    receipt = batch.receipt
    assert (receipt.added, receipt.done, receipt.dead) == (4, 3, 1)
    assert "3 done, 1 dead" in told
    assert "3 done, 1 dead" in PAGE
    assert "state=success" in told
