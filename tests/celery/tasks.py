"""A Celery project as one finds them: its addresses come from the environment."""

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

ADDRESS = os.environ.get("TASKS_ADDRESS", "127.0.0.1:9090")
app = Celery("tasks", broker_url=f"queueber://{ADDRESS}", result_backend=f"queueber://{ADDRESS}")
app.conf.update(
    broker_connection_retry_on_startup=True,
    result_extended=True,
    broker_transport_options={"visibility_timeout": 6},
)


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task
def mul(x: int, y: int) -> int:
    return x * y


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def fail(text: str) -> None:
    raise ValueError(text)


@app.task(bind=True, max_retries=3)
def third_time(self: Any) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return int(self.request.retries)


@app.task(acks_late=True)
def slow(folder: str, name: str, seconds: float) -> str:
    """Leaves a line when it begins and one when it ends."""
    with (Path(folder) / name).open("a") as log:
        log.write("begin\n")
    time.sleep(seconds)
    with (Path(folder) / name).open("a") as log:
        log.write("end\n")
    return name


@app.task(bind=True)
def was_redelivered(self: Any) -> bool:
    return bool(self.request.delivery_info["redelivered"])
