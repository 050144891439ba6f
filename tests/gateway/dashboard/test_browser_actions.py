"""What operators do in the page: nothing without a question, and then what was asked for."""

from collections.abc import Callable
from typing import Any

import queueber
from queueber.model import GroupInfo
from tests.support.http import GatewayProcess

Open = Callable[..., Any]


def press(page: Any, name: str, among: str = '[aria-label="Actions"]') -> Any:
    """Press a button of the page; returns the dialog that it opens."""
    page.locator(among).get_by_role("button", name=name, exact=True).click()
    dialog = page.locator("dialog")
    dialog.wait_for()
    return dialog


def answer(page: Any, dialog: Any, button: str, typed: str = "") -> None:
    """Press a button of the dialog, and wait until the page says what came of it."""
    if typed:
        assert dialog.get_by_role("button", name=button, exact=True).is_disabled()
        dialog.get_by_label("Type").fill(typed)
    before = int(page.locator("#toasts").get_attribute("data-told") or 0)
    dialog.get_by_role("button", name=button, exact=True).click()
    page.locator(f'#toasts[data-told="{before + 1}"]').wait_for()


def told(page: Any) -> str:
    return str(page.locator(".toast").last.inner_text())


def dead_letter(queue: queueber.Queue, contents: bytes) -> bytes:
    (item_id,) = queue.add(contents)
    queue.poll().fail("on purpose")
    return item_id


def test_a_queue_is_paused_for_a_while_and_resumed(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    page = open_page(gateway, f"#/queues/{queue.name}")

    dialog = press(page, "Pause")
    dialog.get_by_label("For how many minutes").fill("10")
    answer(page, dialog, "Pause")
    assert told(page) == f"{queue.name} is paused."
    page.get_by_text("paused until").wait_for()
    assert 0 < queue.stats().paused_until_ms < 2**60

    answer(page, press(page, "Resume"), "Resume")
    assert queue.stats().paused_until_ms == 0
    page.get_by_text("paused until").wait_for(state="hidden")


def test_a_question_that_is_not_answered_changes_nothing(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    dead_letter(queue, b"x")
    queue.add(b"y")
    before = queue.stats()
    page = open_page(gateway, f"#/queues/{queue.name}")
    page.get_by_role("button", name="Redrive").wait_for()

    for button in ("Pause", "Redrive", "Purge", "Settings", "Delete"):
        press(page, button).get_by_role("button", name="Cancel").click()
        page.locator("dialog").wait_for(state="detached")

    after = queue.stats()
    assert (after.ready, after.dead, after.settings) == (1, 1, before.settings)
    assert page.locator(".toast").count() == 0


def test_a_purge_needs_the_name_and_deletes_items_of_one_state(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 1500)
    queue.add([b"y"] * 3, delay=600)
    page = open_page(gateway, f"#/queues/{queue.name}")

    dialog = press(page, "Purge")
    dialog.get_by_label("State").select_option("ready")
    dialog.get_by_label("Type").fill("another name")
    assert dialog.get_by_role("button", name="Purge").is_disabled()
    page.keyboard.press("Enter")
    answer(page, dialog, "Purge", typed=queue.name)

    assert told(page) == "1,500 items purged."
    stats = queue.stats()
    assert (stats.ready, stats.delayed) == (0, 3)


def test_dead_letters_are_redriven_one_by_one_or_all_and_items_are_deleted(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    ids = [dead_letter(queue, b"item %d" % n) for n in range(4)]
    page = open_page(gateway, f"#/queues/{queue.name}/dead")
    entries = page.locator(".item")
    entries.nth(3).wait_for()

    entries.nth(0).get_by_role("button", name="Redrive").click()
    answer(page, page.locator("dialog"), "Redrive")
    assert [item.id for item in queue.peek().items] == ids[:1]
    entries.nth(3).wait_for(state="detached")
    entries.nth(0).get_by_role("button", name="Delete").click()
    answer(page, page.locator("dialog"), "Delete")
    assert told(page) == "The item was deleted."
    assert [item.id for item in queue.peek("dead").items] == ids[2:]

    answer(page, press(page, "Redrive"), "Redrive all")
    assert told(page) == "2 items redriven."
    assert {item.id for item in queue.peek().items} == {ids[0], *ids[2:]}


def test_settings_are_changed_and_those_that_were_not_stay(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue, client: queueber.Client
) -> None:
    client.configure_queue(queue.name, lease=45, items_max=1000, dedup_window=1.5)
    before = queue.stats().settings
    page = open_page(gateway, f"#/queues/{queue.name}")

    dialog = press(page, "Settings")
    dialog.get_by_label("Attempts").fill("7")
    dialog.get_by_label("Retries after").fill("0.5, 10, 60")
    dialog.get_by_label("Try items of a lost lease apart").uncheck()
    answer(page, dialog, "Save")

    after = queue.stats().settings
    assert (after.attempts_max, after.backoff_ms, after.isolation) == (
        7,
        (500, 10000, 60000),
        False,
    )
    assert (after.lease_ms, after.items_max) == (before.lease_ms, before.items_max) == (45000, 1000)
    assert after.dedup_window_ms == 1500


def test_what_the_server_refuses_is_told_in_its_words(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue
) -> None:
    page = open_page(gateway, f"#/queues/{queue.name}", may_fail=True)

    dialog = press(page, "Settings")
    dialog.get_by_label("Attempts").fill("5000")
    answer(page, dialog, "Save")

    assert "attempts_max" in told(page)
    assert page.locator(".toast.bad").count() == 1
    assert queue.stats().settings.attempts_max == 1


def test_a_queue_is_deleted_and_the_overview_is_shown(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue, client: queueber.Client
) -> None:
    queue.add(b"x")
    page = open_page(gateway, f"#/queues/{queue.name}")

    answer(page, press(page, "Delete"), "Delete the queue", typed=queue.name)

    page.get_by_label("Filter queues").wait_for()
    assert queue.name not in [stats.name for stats in client.queues()]


def test_a_queue_that_is_gone_says_so(
    gateway: GatewayProcess, open_page: Open, queue: queueber.Queue, client: queueber.Client
) -> None:
    page = open_page(gateway, f"#/queues/{queue.name}", may_fail=True)
    page.get_by_role("button", name="Pause").wait_for()

    client.delete_queue(queue.name)

    page.get_by_role("alert").filter(has_text=f"there is no queue '{queue.name}'").wait_for()


# --- groups of a topic ----------------------------------------------------------------------------


def group_of(topic: queueber.Topic) -> GroupInfo:
    return topic.describe_group("readers")


GROUP = 'tr[data-group="readers"]'


def test_a_group_is_paused_reset_and_deleted(
    gateway: GatewayProcess, open_page: Open, topic: queueber.Topic
) -> None:
    topic.create_group("readers")
    topic.publish([b"x"] * 5)
    path = f"#/topics/{topic.name.replace('/', '%2F')}/groups"
    page = open_page(gateway, path)
    page.get_by_role("button", name="Reset").wait_for()

    answer(page, press(page, "Pause", GROUP), "Pause")
    assert group_of(topic).paused_until_ms > 0
    page.locator("td .badge", has_text="paused").wait_for()
    answer(page, press(page, "Resume", GROUP), "Resume")
    assert group_of(topic).paused_until_ms == 0
    answer(page, press(page, "Reset", GROUP), "Reset", typed="readers")
    assert group_of(topic).lag == 0
    dialog = press(page, "Reset", GROUP)
    dialog.locator("select").select_option("offset")
    dialog.get_by_label("Minutes, or the offset").fill("2")
    answer(page, dialog, "Reset", typed="readers")
    assert list(group_of(topic).cursors) == [2]
    answer(page, press(page, "Delete", GROUP), "Delete the group", typed="readers")
    assert topic.groups() == []


def test_a_topic_is_trimmed_closed_and_deleted(
    gateway: GatewayProcess, open_page: Open, topic: queueber.Topic, client: queueber.Client
) -> None:
    topic.publish([b"x"] * 5)
    page = open_page(gateway, f"#/topics/{topic.name.replace('/', '%2F')}/partitions")

    dialog = press(page, "Trim")
    dialog.get_by_label("older than").fill("0")
    answer(page, dialog, "Trim", typed=topic.name)
    assert told(page) == "5 messages deleted."
    answer(page, press(page, "Close"), "Close the topic", typed=topic.name)
    assert topic.describe().is_closed
    page.locator("h1 + .badge", has_text="closed").wait_for()
    answer(page, press(page, "Delete"), "Delete the topic", typed=topic.name)
    assert topic.name not in list(client.topics())


def test_messages_are_read_and_followed(
    gateway: GatewayProcess, open_page: Open, topic: queueber.Topic
) -> None:
    topic.publish([(b'{"n": %d}' % n, f"key-{n}") for n in range(30)])
    path = f"#/topics/{topic.name.replace('/', '%2F')}"
    page = open_page(gateway, path)
    texts = page.locator(".item pre")
    page.get_by_text("Offsets 10 to 29").wait_for()

    page.get_by_label("From").select_option("earliest")
    page.get_by_text("Offsets 0 to 19").wait_for()
    assert texts.first.inner_text() == '{"n": 0}'
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Offsets 20 to 29").wait_for()

    page.get_by_role("link", name="Live tail").click()
    page.get_by_text("Live", exact=True).wait_for()
    topic.publish((b"hot news", "k"))
    page.get_by_text("1 message since you look").wait_for()
    assert texts.all_inner_texts() == ["hot news"]
    page.get_by_role("button", name="Hold").click()
    topic.publish(b"more news")
    page.get_by_text("2 messages since you look").wait_for()
    assert texts.all_inner_texts() == ["hot news"]
    page.get_by_role("button", name="Go on").click()
    assert texts.all_inner_texts() == ["more news", "hot news"]
