"""The page in a real browser: what it shows, live, and how one gets around in it."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import queueber
from tests.support.http import GatewayProcess

Open = Callable[..., Any]
PHONE = {"width": 360, "height": 740}


def tile(page: Any, name: str) -> Any:
    return page.locator(f'[data-tile="{name}"] dd')


def wait_for_text(locator: Any, text: str) -> None:
    """Wait until the element has exactly that text."""
    locator.filter(has_text=re.compile(f"^{re.escape(text)}$")).wait_for(state="attached")


def row(page: Any, name: str) -> Any:
    return page.locator(f'tr[data-name="{name}"]')


# --- the overview ---------------------------------------------------------------------------------


def test_the_overview_shows_queues_and_topics_and_changes_by_itself(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue, topic: queueber.Topic
) -> None:
    queue.add([b"x"] * 3)
    topic.create_group("readers")
    topic.publish([b"x"] * 4)
    page = open_page(gateway)

    ready = row(page, queue.name).locator("td").nth(1)
    wait_for_text(ready, "3")
    wait_for_text(row(page, topic.name).locator("td").nth(1), "4")
    queue.add([b"x"] * 1000)
    wait_for_text(ready, "1,003")
    queue.pause()
    wait_for_text(row(page, queue.name).locator(".badge"), "paused")
    assert page.locator(".health.good").inner_text().startswith(queueber.__version__)
    assert page.title() == "Queueber"


def test_queues_are_filtered_and_sorted(
    gateway: GatewayProcess, open_page: Open, client: queueber.Client
) -> None:
    for number, name in enumerate(("sorted-b", "sorted-a", "sorted-c")):
        client.queue(name).add([b"x"] * (number + 1))
    page = open_page(gateway)
    row(page, "sorted-c").wait_for()

    def shown() -> list[str]:
        names = page.locator('section[aria-label="queues"] td.name a').all_inner_texts()
        return list(names)

    page.get_by_label("Filter queues").fill("SORTED")
    assert shown() == ["sorted-a", "sorted-b", "sorted-c"]
    page.get_by_role("button", name="Ready", exact=True).click()
    assert shown() == ["sorted-c", "sorted-a", "sorted-b"]
    page.get_by_role("button", name="Ready", exact=True).click()
    assert shown() == ["sorted-b", "sorted-a", "sorted-c"]
    assert page.locator('th[aria-sort="ascending"]').first.inner_text().startswith("Ready")
    page.get_by_label("Filter queues").fill("nothing has this name")
    assert page.get_by_text("No queue matches.").is_visible()


def test_topics_are_found_by_how_they_begin(
    gateway: GatewayProcess, open_page: Open, client: queueber.Client
) -> None:
    for name in ("found/one", "found/two", "other/one"):
        client.topic(name).publish(b"x")
    page = open_page(gateway)
    row(page, "other/one").wait_for()

    page.get_by_label("Filter topics").fill("found/")

    row(page, "other/one").wait_for(state="detached")
    assert row(page, "found/two").is_visible()


def test_more_topics_than_a_page_are_paged_by_the_server(
    gateway: GatewayProcess, open_page: Open, client: queueber.Client
) -> None:
    client.publish({f"paged/{number:03}": b"x" for number in range(60)})
    page = open_page(gateway)
    page.get_by_label("Filter topics").fill("paged/")
    section = page.locator('section[aria-label="topics"]')
    row(page, "paged/049").wait_for()
    assert section.locator("td.name a").count() == 50

    section.get_by_role("button", name="Next").click()
    row(page, "paged/050").wait_for()
    names = section.locator("td.name a").all_inner_texts()
    assert names == [f"paged/{number:03}" for number in range(50, 60)]
    section.get_by_role("button", name="Previous").click()
    row(page, "paged/000").wait_for()


# --- a queue --------------------------------------------------------------------------------------


def test_a_queue_shows_who_holds_what_and_how_far_batches_are(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 8, batch="nightly")
    queue.poll(2).remove()
    queue.poll(3, lease=60)
    page = open_page(gateway, f"#/queues/{queue.name}/leases")

    wait_for_text(tile(page, "leased"), "3")
    held = page.locator("tbody tr")
    held.wait_for()
    assert "tests (127.0.0.1:" in held.inner_text()
    assert re.search(r"in \d+ s|in 1m 00s", held.inner_text())
    page.get_by_role("link", name="Batches").click()
    page.get_by_text("nightly").wait_for()
    assert page.locator("progress").evaluate("bar => bar.value / bar.max") == 0.25
    assert page.locator("tbody tr td.n").all_inner_texts() == ["8", "2", "0", "6"]
    queue.purge("leased")
    queue.purge("ready")
    page.locator("summary").click()
    digest = queue.receipt("nightly").done_digest.hex()
    assert digest in page.locator("details").inner_text()


def test_contents_are_shown_as_text_json_and_hex(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add(json.dumps({"b": [1, "ü"]}).encode(), key="k1", attributes={"a": "1"}, priority=7)
    page = open_page(gateway, f"#/queues/{queue.name}")
    item = page.locator(".item")
    contents = item.locator("pre")

    assert contents.inner_text() == '{"b": [1, "\\u00fc"]}'
    facts = item.locator(".facts").inner_text()
    assert all(fact in facts for fact in ("key k1", "a=1", "priority 7"))
    page.get_by_role("button", name="JSON").click()
    assert contents.inner_text() == '{\n  "b": [\n    1,\n    "ü"\n  ]\n}'
    page.get_by_role("button", name="Hex").click()
    first = "000000  7b 22 62 22 3a 20 5b 31  2c 20 22 5c 75 30 30 66"
    assert contents.inner_text().startswith(f'{first}  {{"b": [1, "\\u00f')


def test_dead_letters_are_shown_with_why_they_died(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add(b"bad input")
    queue.poll().fail("ValueError: no number\n  in line 7")
    page = open_page(gateway, f"#/queues/{queue.name}/dead")
    item = page.locator(".item")
    item.wait_for()

    assert item.locator(".error").inner_text() == "ValueError: no number\n  in line 7"
    facts = item.locator(".facts").inner_text()
    assert "1 failed attempt" in facts
    assert "died: " in facts
    assert item.locator("pre").inner_text() == "bad input"


def test_pages_of_items_go_on_and_back(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add([b"item %d" % n for n in range(25)])
    page = open_page(gateway, f"#/queues/{queue.name}")
    texts = page.locator(".item pre")
    page.get_by_text("1 to 20").wait_for()

    page.get_by_role("button", name="Next").click()
    page.get_by_text("21 to 25").wait_for()
    assert texts.all_inner_texts() == [f"item {n}" for n in range(20, 25)]
    page.get_by_role("button", name="Previous").click()
    page.get_by_text("1 to 20").wait_for()
    assert texts.first.inner_text() == "item 0"


HISTORY = {
    "end_ms": 1_700_000_000_000,
    "step_ms": 10_000,
    "series": {
        name: [float(at % 7) for at in range(360)]
        for name in ("added_per_s", "polled_per_s", "completed_per_s", "failed_per_s", "ready")
    },
}


def test_plots_show_values_to_the_mouse_and_to_the_keyboard(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    page = open_page(gateway)
    page.route("**/history?*", lambda route: route.fulfill(json=HISTORY))
    page.goto(f"http://{gateway.address}/#/queues/{queue.name}")
    figure = page.locator("figure", has_text="Throughput")
    chart = figure.locator("svg")
    figure.locator("path.series").first.wait_for(state="attached")

    assert figure.locator("path.series").count() == 4
    assert "added: now 2, most 6" in chart.get_attribute("aria-label")
    chart.hover()
    told = figure.locator(".tip").inner_text().split()[1:]
    assert told[::2] == ["added", "polled", "done", "failed"]
    assert len(set(told[1::2])) == 1
    page.mouse.move(0, 0)
    assert not figure.locator(".tip").is_visible()
    chart.focus()
    page.keyboard.press("End")
    assert "added2polled2" in figure.locator("[aria-live]").inner_text().replace(" ", "")
    page.keyboard.press("ArrowLeft")
    assert "added1polled1" in figure.locator("[aria-live]").inner_text().replace(" ", "")
    empty = page.locator("figure", has_text="Latency")
    assert empty.get_by_text("Nothing was recorded yet").is_visible()


def test_the_span_of_plots_is_an_hour_or_a_day(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    page = open_page(gateway, f"#/queues/{queue.name}")
    with page.expect_response(re.compile("history.span=day")) as answered:
        page.get_by_role("button", name="Last day").click()

    assert answered.value.status == 200
    assert page.get_by_role("button", name="Last day").get_attribute("aria-pressed") == "true"


# --- a phone, the keyboard, light and dark --------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_on_a_phone(
    gateway: GatewayProcess,
    open_page: Open,
    queue: queueber.Queue,
    topic: queueber.Topic,
    scheme: str,
) -> None:
    queue.add(b"w" * 5000, key="k" * 300, batch="b" * 200)
    queue.poll(lease=60)
    topic.create_group("g" * 60)
    topic.publish((b"w" * 500, "k" * 300))
    page = open_page(gateway, viewport=PHONE, color_scheme=scheme)
    row(page, queue.name).wait_for()
    paths = ["#/", *(f"#/queues/{queue.name}/{tab}" for tab in ("items", "leases", "batches"))]
    paths += [f"#/topics/{topic.name.replace('/', '%2F')}/{tab}" for tab in ("groups", "tail")]

    for path in paths:
        page.goto(f"http://{gateway.address}/{path}")
        page.locator("h1").first.wait_for(state="attached")
        page.wait_for_timeout(250)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_everything_is_reached_by_keyboard(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    page = open_page(gateway)
    row(page, queue.name).wait_for()

    page.keyboard.press("Tab")
    skip = page.get_by_text("Skip to the content")
    assert skip.evaluate("link => link === document.activeElement")
    assert skip.bounding_box()["y"] >= 0
    page.keyboard.press("/")
    page.keyboard.type(queue.name)
    assert page.get_by_label("Filter queues").input_value() == queue.name
    row(page, queue.name).locator("a").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=queue.name).wait_for()
    pause = page.get_by_role("button", name="Pause")
    pause.wait_for()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"Pause", "Purge", "Settings", "Delete", "Last day", "Hex"} <= reached
    pause.focus()
    page.keyboard.press("Enter")
    page.locator("dialog").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    assert pause.evaluate("button => button === document.activeElement")
    assert queue.stats().paused_until_ms == 0


CONTRAST = """() => {
  const probe = document.body.appendChild(document.createElement("i"));
  const canvas = document.createElement("canvas").getContext("2d");
  const part = (value) => {
    const c = value / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const light = (name) => {
    probe.style.color = `var(${name})`;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) + 0.05;
  };
  const ratio = ([a, b]) => Math.max(light(a), light(b)) / Math.min(light(a), light(b));
  const texts = ["--text", "--muted", "--accent", "--good", "--warn", "--bad"];
  const backs = ["--surface", "--page", "--raised"];
  const pairs = texts.flatMap((text) => backs.map((back) => [text, back]));
  for (const name of ["--bad", "--warn", "--accent"]) pairs.push([name, `${name}-soft`]);
  return Math.min(...pairs.map(ratio));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_in_dark(
    gateway: GatewayProcess, open_page: Open, scheme: str
) -> None:
    """At least 4.5 to 1, as WCAG's level AA has it."""
    page = open_page(gateway, color_scheme=scheme)

    assert page.evaluate(CONTRAST) >= 4.5


def test_colours_follow_the_system_unless_one_chooses(
    gateway: GatewayProcess, open_page: Open
) -> None:
    page = open_page(gateway, color_scheme="dark")
    page.get_by_role("button", name="Colours").wait_for()

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    dark = background()
    page.get_by_role("button", name="Colours: Auto").click()
    light = background()
    assert light != dark
    page.reload()
    page.get_by_role("button", name="Colours: Light").wait_for()
    assert background() == light
    page.get_by_role("button", name="Colours: Light").click()
    assert background() == dark


def test_every_control_has_a_name(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add(b"x", batch="b")
    page = open_page(gateway, f"#/queues/{queue.name}/batches")
    page.locator("progress").wait_for()

    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, progress, svg[role=img]")]
        .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label")
                            || each.labels?.length))
        .map((each) => each.outerHTML)"""
    )
    assert unnamed == []
