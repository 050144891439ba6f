"""Installing Queueber is all that it takes for `queueber://` addresses."""

import subprocess
import sys

import pytest
from celery import Celery
from kombu import Connection
from kombu.serialization import dumps

from queueber.celery.backend import QueueberBackend
from queueber.celery.transport import Transport


def test_addresses_are_known_to_kombu_and_celery() -> None:
    assert isinstance(Connection("queueber://127.0.0.1:9").transport, Transport)
    app = Celery(result_backend="queueber://127.0.0.1:9", set_as_current=False)
    assert isinstance(app.backend, QueueberBackend)


def test_programs_with_another_broker_load_nothing_of_queueber() -> None:
    program = (
        "import sys, kombu; kombu.Connection('memory://').connect();"
        "print([name for name in sys.modules if name.partition('.')[0] == 'queueber'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["[]"]


def test_entry_point_is_no_serializer() -> None:
    with pytest.raises(Exception, match="no serializer"):
        dumps({"a": 1}, serializer="queueber-transport")
