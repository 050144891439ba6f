"""The files of the dashboard: how they are sent, and what must not be in them."""

import re

import pytest

from queueber.auth.roles import ROLES
from queueber.gateway.dashboard.pages import CONTENT_SECURITY_POLICY, FILES, FOLDER, VERSION
from tests.support.http import GatewayProcess

SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
ANYWHERE = re.compile(r"https?://(?!www\.w3\.org/)|//[a-z0-9-]+\.[a-z]{2,}/")


def test_the_page_is_sent_with_a_strict_policy_and_asked_for_again(gateway: GatewayProcess) -> None:
    page = gateway.ask("GET", "/")

    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert page.headers["cache-control"] == "no-cache"
    assert "'unsafe" not in CONTENT_SECURITY_POLICY
    same = gateway.ask("GET", "/", headers={"if-none-match": page.headers["etag"]})
    assert (same.status, same.body) == (304, b"")


def test_every_file_is_sent_to_be_kept_for_good(gateway: GatewayProcess) -> None:
    kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for name in FILES:
        if name == "index.html":
            continue
        sent = gateway.ask("GET", f"/dashboard/{VERSION}/{name}")
        assert (sent.status, sent.body) == (200, FILES[name]), name
        assert sent.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert sent.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert sent.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


@pytest.mark.parametrize(
    "path", ["/dashboard/0/base.css", f"/dashboard/{VERSION}/..%2Fpages.py", "/dashboard/"]
)
def test_nothing_else_is_sent(gateway: GatewayProcess, path: str) -> None:
    assert gateway.ask("GET", path).status == 404


def test_all_files_of_the_folder_are_known() -> None:
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}

    assert set(FILES) == there


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_needs_nothing_of_others(name: str) -> None:
    assert ANYWHERE.search(FILES[name].decode()) is None


def test_the_page_has_no_script_and_no_style_in_it() -> None:
    page = FILES["index.html"].decode()

    assert re.findall(r"<script(?![^>]* src=)|<style|\bstyle=|\bon[a-z]+=", page) == []
    assert [part for part in re.findall(r'(?:src|href)="([^"]*)"', page) if part != "#main"] == [
        f"/dashboard/VERSION/{name}"
        for name in ("icon.svg", "base.css", "parts.css", "app/theme.js", "app/main.js")
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_turns_text_into_html_or_code(name: str) -> None:
    risky = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|Function\("

    assert re.findall(risky, FILES[name].decode()) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_says_what_it_is_for(name: str) -> None:
    text = FILES[name].decode()

    assert len(text.splitlines()) <= 250
    assert text.startswith("// ")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_import_files_that_exist(name: str) -> None:
    folder = (FOLDER / name).parent
    for target in re.findall(r'^import .* from "(.+)";$', FILES[name].decode(), re.M):
        assert (folder / target).is_file(), target


def test_the_roles_of_the_page_are_those_of_the_server() -> None:
    listed = re.findall(r"^  (\w+): \[(.*)\],$", FILES["app/rights.js"].decode(), re.MULTILINE)
    roles = {role: set(re.findall(r'"(\w+)"', actions)) for role, actions in listed}

    assert roles == {role: {each.value for each in actions} for role, actions in ROLES.items()}


def test_the_browser_never_asks_for_a_password_of_its_own() -> None:
    """It would go on sending that with each request, also after a logout."""
    asking = {name: FILES[name].decode() for name in SCRIPTS if b"fetch(" in FILES[name]}
    assert sorted(asking) == ["app/api.js", "app/live.js"]
    for name, text in asking.items():
        assert text.count('credentials: "omit"') == text.count("fetch("), name
