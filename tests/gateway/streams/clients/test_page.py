"""The page of docs/streams.md in a real browser: it follows a stream, appends, and resumes."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.dashboard.conftest import WAIT_MS, browser
from tests.support.stream_server import StreamServer, running_stream_server

pytestmark = [pytest.mark.slow, pytest.mark.recovery]

ROOT = Path(__file__).parents[4]
PAGE = re.search(
    r"^```html\n(.*?)^```$", (ROOT / "docs" / "streams.md").read_text(), re.MULTILINE | re.DOTALL
)
JSON = {"content-type": "application/json"}

__all__ = ["browser"]


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The origin of another server, and the folder that it serves."""
    folder = tmp_path / "site"
    folder.mkdir()
    serving = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}", folder
    serving.shutdown()
    thread.join()
    serving.server_close()


def open_page(browser: Any, server: StreamServer, site: tuple[str, Path]) -> Any:
    assert PAGE is not None
    origin, folder = site
    page_text = PAGE[1].replace("127.0.0.1:9091", server.http_address)
    (folder / "chat.html").write_text(page_text)
    page = browser.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{origin}/chat.html")
    return page


def say(url: str, text: str) -> None:
    answer = httpx.post(url, json=[{"from": "ann", "text": text}])
    assert answer.status_code == 204


def wait_for_lines(page: Any, *lines: str) -> None:
    """Wait until the last line is there, and compare all of them."""
    page.get_by_text(lines[-1], exact=True).wait_for()
    assert page.locator("li").all_inner_texts() == [*lines]


def test_it_follows_appends_and_goes_on_after_a_killed_gateway(
    browser: Any, site: tuple[str, Path], tmp_path: Path
) -> None:
    with running_stream_server(tmp_path, QUEUEBER_GATEWAY_ALLOWED_ORIGINS=site[0]) as server:
        url = server.stream("chats/lobby")
        httpx.put(url, headers=JSON).raise_for_status()
        say(url, "<b>before</b>")

        page = open_page(browser, server, site)
        wait_for_lines(page, "ann: <b>before</b>")
        say(url, "live")
        wait_for_lines(page, "ann: <b>before</b>", "ann: live")
        page.get_by_label("Message").fill("from the page")
        page.get_by_role("button").click()
        wait_for_lines(page, "ann: <b>before</b>", "ann: live", "me: from the page")

        server.kill_gateway()
        say_when_it_is_back(url, "after")
        wait_for_lines(page, "ann: <b>before</b>", "ann: live", "me: from the page", "ann: after")
        page.close()


def say_when_it_is_back(url: str, text: str) -> None:
    """The server keeps the socket: a request waits there for the next gateway."""
    with httpx.Client(transport=httpx.HTTPTransport(retries=20)) as client:
        sent = client.post(url, json=[{"from": "ann", "text": text}], timeout=20.0)
    assert sent.status_code == 204


def test_it_gets_nothing_where_its_origin_is_not_named(
    browser: Any, site: tuple[str, Path], streams: StreamServer
) -> None:
    url = streams.stream("chats/lobby")
    httpx.put(url, headers=JSON).raise_for_status()
    say(url, "secret")

    page = open_page(browser, streams, site)
    # It tries again every half second.
    page.wait_for_event("requestfailed", lambda request: "live=sse" in request.url)
    with page.expect_event("requestfailed", lambda request: request.url == url):
        page.get_by_label("Message").fill("from elsewhere")
        page.get_by_role("button").click()

    assert page.locator("li").count() == 0
    assert httpx.get(url).json() == [{"from": "ann", "text": "secret"}]
    page.close()
