"""A real browser for the tests of the page: Debian's chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.support.http import GatewayProcess, running_gateway

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 20_000

_numbers = count()


def browser_program() -> str | None:
    """The browser to use; None if there is none."""
    return os.environ.get("QUEUEBER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """For a file: the page shows whatever is there, and some files choose what that is."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(server: ServerProcess) -> Iterator[GatewayProcess]:
    with running_gateway(server.address) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = browser_program()
    if program is None:
        pytest.skip("there is no chromium; install it, or set QUEUEBER_CHROMIUM to a browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        # Root has no sandbox; the page is our own.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = running.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages in contexts of their own; in the end none may have had an error."""
    contexts = []
    trouble: list[str] = []
    """Errors of scripts, of the policy, and failed requests."""

    def note_error(line: Any) -> None:
        if line.type == "error":
            trouble.append(f"{line.text} {line.location}")

    def opened(gateway: GatewayProcess, path: str = "#/", **options: Any) -> Any:
        may_fail = options.pop("may_fail", False)
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        if not may_fail:
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("console", note_error)
        page.goto(f"http://{gateway.address}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.fixture
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address, name="tests") as connected:
        yield connected


@pytest.fixture
def queue(client: queueber.Client) -> queueber.Queue:
    name = f"queue-{next(_numbers)}"
    client.create_queue(name, attempts_max=1)
    return client.queue(name)


@pytest.fixture
def topic(client: queueber.Client) -> queueber.Topic:
    return client.topic(f"topic/{next(_numbers)}")
