"""KalamDB's own client in Rust, from crates.io, against the gateway."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.gateway.kalam.conftest import PASSWORD, Kalam

PROJECT = Path(__file__).parent / "rust_client"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Building it takes five minutes, and needs Rust 1.92 and the network."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("needs cargo")
    given = os.environ.get("QUEUEBER_TEST_CARGO_TARGET")
    target = Path(given) if given else tmp_path_factory.mktemp("target")
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT, project, dirs_exist_ok=True)
    command = [cargo, "build", "--quiet", "--target-dir", str(target)]
    subprocess.run(command, cwd=project, check=True, timeout=1800)
    return target / "debug" / "consume-with-kalam-client"


@pytest.mark.long
@pytest.mark.timeout(2000)
def test_the_client_logs_in_consumes_and_commits(
    program: Path, kalam: Kalam, protected: ServerProcess, admin: queueber.Client
) -> None:
    topic = "app.rust"
    admin.create_topic(topic)
    routed = {"queueber.op": "delete", "queueber.queue": "mail"}
    plain = [queueber.NewMessage(b"%d" % each, "k") for each in range(4)]
    admin.topic(topic).publish([*plain, queueber.NewMessage(b"4", "", routed)])

    done = subprocess.run(
        [program, f"http://{kalam.gateway.address}", "a-service", PASSWORD, topic, "g", "5"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout.splitlines() == [
        *[f'{each} {each} Insert Some("k") ' for each in range(4)],
        "4 4 Delete None mail",
        "committed 4",
    ]
    assert admin.topic(topic).describe_group("g").cursors == [5]
