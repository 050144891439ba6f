"""An app that worker processes of the tests import. Its address is that of no server."""

import os
import time

import queueber

app = queueber.App("127.0.0.1:1")


@app.job("pid", queue="samples", timeout=20)
def pid(number: int) -> list[int]:
    return [number, os.getpid()]


@app.job("hang", queue="samples", timeout=0.2, backoff=0)
def hang(item: queueber.WorkItem) -> str:
    if item.attempt == 1:
        time.sleep(3600)
    return "at last"
