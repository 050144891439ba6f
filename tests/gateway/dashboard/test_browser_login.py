"""The page of a protected server: who is let in, and what each may see and do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from tests.support.callers import add_token, add_user
from tests.support.http import GatewayProcess

Open = Callable[..., Any]


@dataclass
class Tokens:
    file: Path
    admin: str
    operator: str
    """Of queues that begin with `ours-`."""
    reader: str


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    add_user(file, "ada", "correct horse")
    return Tokens(
        file,
        add_token(file, "admin", name="root"),
        add_token(file, "operator", queues=("ours-*",), topics=("ours-*",), name="olga"),
        add_token(file, "reader", name="rita"),
    )


@pytest.fixture(scope="module")
def server(tokens: Tokens) -> Iterator[ServerProcess]:
    with running_server("--tokens-file", str(tokens.file)) as running:
        with queueber.connect(running.address, token=tokens.admin) as client:
            for name in ("ours-1", "theirs-1"):
                client.create_queue(name)
                client.queue(name).add(b"x")
                client.topic(name).publish(b"x")
        yield running


def log_in(page: Any, token: str) -> None:
    page.get_by_label("Token", exact=True).fill(token)
    page.keyboard.press("Enter")


def queues(page: Any) -> list[str]:
    page.locator('section[aria-label="queues"] td.name a').first.wait_for()
    found: list[str] = page.locator('section[aria-label="queues"] td.name a').all_inner_texts()
    return found


def test_a_login_is_asked_for_and_kept_in_the_tab_only(
    gateway: GatewayProcess, open_page: Open, tokens: Tokens
) -> None:
    page = open_page(gateway, may_fail=True)
    page.get_by_role("heading", name="Log in").wait_for()
    assert page.locator("table").count() == 0
    assert page.get_by_label("Token", exact=True).evaluate("i => i === document.activeElement")

    log_in(page, "no such token")
    page.get_by_role("alert").filter(has_text="does not accept").wait_for()
    log_in(page, tokens.admin)

    assert queues(page) == ["default", "ours-1", "theirs-1"]
    assert page.locator(".caller").inner_text() == "root"
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    assert tokens.admin in page.evaluate("JSON.stringify(sessionStorage)")
    assert page.context.cookies() == []
    page.reload()
    assert queues(page) == ["default", "ours-1", "theirs-1"]
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_user_logs_in_with_a_password(gateway: GatewayProcess, open_page: Open) -> None:
    page = open_page(gateway, "#/queues/theirs-1", may_fail=True)
    page.get_by_role("button", name="Password").click()
    page.get_by_label("User").fill("ada")
    page.get_by_label("Password", exact=True).fill("correct horse")
    page.get_by_role("button", name="Log in").click()

    page.get_by_role("heading", name="theirs-1").wait_for()
    page.get_by_role("button", name="Settings").wait_for()
    assert page.locator(".caller").inner_text() == "ada"


def test_a_caller_sees_only_what_it_may_see(
    gateway: GatewayProcess, open_page: Open, tokens: Tokens
) -> None:
    page = open_page(gateway, may_fail=True)
    log_in(page, tokens.operator)

    assert queues(page) == ["ours-1"]
    page.locator('section[aria-label="topics"] td.name a', has_text="ours-1").wait_for()
    assert page.locator("td.name a", has_text="theirs-1").count() == 0
    page.goto(f"http://{gateway.address}/#/queues/theirs-1")
    page.locator(".notice.bad", has_text="theirs-1").wait_for()
    assert page.locator(".item").count() == 0
    assert page.locator("main").get_by_role("button", name="Purge").count() == 0


@pytest.mark.parametrize(
    ("who", "queue", "shown"),
    [
        ("reader", "ours-1", set()),
        ("operator", "ours-1", {"Pause", "Purge"}),
        ("admin", "ours-1", {"Pause", "Purge", "Settings", "Delete"}),
    ],
)
def test_actions_that_the_caller_may_not_do_are_not_shown(
    gateway: GatewayProcess, open_page: Open, tokens: Tokens, who: str, queue: str, shown: set[str]
) -> None:
    page = open_page(gateway, f"#/queues/{queue}", may_fail=True)
    log_in(page, getattr(tokens, who))
    page.locator('[data-tile="ready"] dd', has_text="1").wait_for()

    actions = page.locator('[aria-label="Actions"] button')
    assert set(actions.all_inner_texts()) == shown
    page.locator(".item").wait_for()
    assert page.locator(".item button").count() == (0 if who == "reader" else 1)


def test_an_action_that_is_refused_all_the_same_is_told_and_hidden(
    gateway: GatewayProcess, open_page: Open, tokens: Tokens
) -> None:
    page = open_page(gateway, "#/queues/ours-1", may_fail=True)
    log_in(page, tokens.admin)
    page.get_by_role("button", name="Settings").wait_for()
    refusal = {"code": "PERMISSION_DENIED", "detail": "you may not operate ours-1"}
    page.route("**/pause", lambda route: route.fulfill(status=403, json=refusal))

    page.get_by_role("button", name="Pause").click()
    page.locator("dialog").get_by_role("button", name="Pause").click()

    page.locator(".toast.bad", has_text="you may not operate ours-1").wait_for()
    actions = page.locator('[aria-label="Actions"] button')
    assert set(actions.all_inner_texts()) == {"Settings", "Delete"}
