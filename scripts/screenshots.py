"""Take the pictures of docs/dashboard.md: a server at work, looked at with Chromium.

Run it with `make screenshots`. Histories have a point every 10 seconds, so it lets the server work
for a few minutes first.
"""

import json
import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import queueber
from queueber.testing import running_server
from tests.support.http import GatewayProcess, running_gateway

FOLDER = Path(__file__).parent.parent / "docs" / "images"
WORK_SECONDS = float(os.environ.get("WORK_SECONDS", "240"))
QUEUES = {
    "ocr-pages": 60.0, "thumbnails": 40.0, "emails": 8.0, "invoices": 5.0, "webhooks": 25.0,
    "embeddings": 30.0, "transcode": 3.0, "nightly-reports": 1.0,
}  # fmt: skip
"""Each with how many items a second come."""
PICTURES = [
    ("overview-light", "#/", 1280, 820, "light"),
    ("queue-dark", "#/queues/ocr-pages/batches", 1280, 700, "dark"),
    ("dead-letters-light", "#/queues/ocr-pages/dead", 1280, 900, "light"),
    ("topic-dark", "#/topics/events%2Forders/groups", 1280, 680, "dark"),
    ("phone-light", "#/", 360, 740, "light"),
    ("phone-dark", "#/queues/ocr-pages/leases", 360, 740, "dark"),
]


class Load:
    """Producers and workers, until it is stopped."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.stopped = threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(name, rate)) for name, rate in QUEUES.items()
        ]
        self.threads.append(threading.Thread(target=self.publish))
        for thread in self.threads:
            thread.start()

    def run(self, name: str, rate: float) -> None:
        chance = random.Random(name)
        with queueber.connect(self.address, name=f"{name}-worker-1") as client:
            client.create_queue(name, attempts_max=2, backoff=[0.5])
            queue = client.queue(name)
            batch = 0
            while not self.stopped.wait(0.5):
                count = round(rate * chance.uniform(0.2, 0.9))
                contents = [
                    json.dumps(
                        {"document": f"scan-{chance.randrange(900)}.pdf", "page": n}
                    ).encode()
                    for n in range(count)
                ]
                if contents:
                    batch += chance.random() < 0.02
                    queue.add(contents, batch=f"{name} {batch + 1}")
                with_luck = queue.poll(round(rate * chance.uniform(0.2, 0.85)) or 1, lease=60)
                if with_luck and chance.random() < 0.05:
                    with_luck.fail("PDFSyntaxError: no /Root object; is this really a PDF?")
                elif with_luck and chance.random() < 0.9:
                    with_luck.remove()

    def publish(self) -> None:
        chance = random.Random(1)
        with queueber.connect(self.address, name="shop") as client:
            client.create_topic("events/orders", partitions=3)
            topic = client.topic("events/orders")
            topic.create_group("billing")
            topic.create_group("search", kind="shared")
            client.topic("audit").publish(b"started")
            read = 0
            while not self.stopped.wait(0.3):
                orders = [
                    (json.dumps({"order": n, "total": 17.5}).encode(), f"customer-{n}")
                    for n in range(chance.randrange(12))
                ]
                if orders:
                    topic.publish(orders)
                read = min(topic.describe().partitions[0].next_offset, read + 1)
                topic.ack("billing", read)
                if lease := topic.group("search").poll(10, lease=30):
                    lease.remove()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def take(browser: Browser, gateway: GatewayProcess) -> None:
    for name, path, width, height, scheme in PICTURES:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(f"http://{gateway.address}/{path}")
        page.wait_for_timeout(5000)
        page.screenshot(path=FOLDER / f"{name}.png")
        context.close()
        sys.stdout.write(f"  docs/images/{name}.png\n")


def main() -> None:
    program = os.environ.get("QUEUEBER_CHROMIUM") or shutil.which("chromium")
    if program is None:
        sys.exit("there is no chromium; install it, or set QUEUEBER_CHROMIUM to a browser")
    FOLDER.mkdir(exist_ok=True)
    with running_server() as server, running_gateway(server.address) as gateway:
        load = Load(server.address)
        try:
            time.sleep(WORK_SECONDS)
            with queueber.connect(server.address) as client:
                client.queue("emails").pause()
            with sync_playwright() as playwright:
                arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
                browser = playwright.chromium.launch(executable_path=program, args=arguments)
                take(browser, gateway)
                browser.close()
        finally:
            load.stop()


if __name__ == "__main__":
    main()
