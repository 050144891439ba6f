"""The page with a thousand queues: quick, a page of them at a time, and found by name."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import queueber
from queueber.limits import QUEUES_MAX
from queueber.testing import ServerProcess, running_server
from tests.support.http import GatewayProcess

Open = Callable[..., Any]
FIRST_ROWS_SECONDS = 10.0
"""Generous: other tests run beside this one. Alone it takes about one."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    async def fill(address: str) -> None:
        async with queueber.connect_async(address) as client:
            names = [f"queue-{number:03}" for number in range(QUEUES_MAX - 1)]
            await asyncio.gather(*(client.create_queue(name) for name in names))
            await asyncio.gather(*(client.queue(name).add(b"x") for name in names[::7]))

    with running_server() as running:
        asyncio.run(fill(running.address))
        yield running


def names(page: Any) -> list[str]:
    found: list[str] = page.locator('section[aria-label="queues"] td.name a').all_inner_texts()
    return found


def test_a_thousand_queues_are_paged_and_filtered(gateway: GatewayProcess, open_page: Open) -> None:
    begun = time.monotonic()
    page = open_page(gateway)
    page.get_by_text(f"1 to 50 of {QUEUES_MAX:,} queues").wait_for()
    assert time.monotonic() - begun < FIRST_ROWS_SECONDS

    assert names(page) == ["default", *(f"queue-{number:03}" for number in range(49))]
    page.get_by_role("button", name="Next").first.click()
    assert names(page)[0] == "queue-049"
    page.get_by_label("Filter queues").fill("queue-77")
    assert names(page) == [f"queue-{number}" for number in range(770, 780)]
    page.get_by_label("Filter queues").fill("")
    page.get_by_role("button", name="Ready", exact=True).click()
    assert names(page)[:3] == ["queue-000", "queue-007", "queue-014"]
    page.locator('[data-tile="queues"] dd', has_text=f"{QUEUES_MAX:,}").wait_for()


def test_rows_stay_where_they_are_while_numbers_change(
    gateway: GatewayProcess, open_page: Open, server: ServerProcess
) -> None:
    page = open_page(gateway)
    row = page.locator('tr[data-name="queue-007"]')
    row.wait_for()
    page.evaluate("document.querySelector('tr[data-name=queue-007]').marked = true")
    row.locator("a").focus()

    with queueber.connect(server.address) as client:
        client.queue("queue-007").add([b"x"] * 41)
    row.locator("td", has_text="42").wait_for()

    assert page.evaluate("document.activeElement.closest('tr').marked")
