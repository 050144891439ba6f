"""The site of the documentation: it is whole, it can be searched, and fetches nothing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.site_hooks import on_page_markdown

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yml"
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|"""
    r"""<link[^>]+rel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*href=["']?(?:https?:)?//|"""
    r"""<link[^>]+href=["']?(?:https?:)?//[^>]*rel=["']?(?:stylesheet|preconnect|preload|icon)"""
)
"""What a browser would get from elsewhere without being asked to. Links to follow are fine."""


def build(config: Path, into: Path) -> "subprocess.CompletedProcess[str]":
    # With --quiet, MkDocs would not count warnings. Whoever asks the network here gets nothing.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:1")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(into)],
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(CONFIG, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_built_and_no_link_is_broken(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]

    assert [page for page in pages if not (site / page.with_suffix(".html")).is_file()] == []


@pytest.mark.slow
def test_a_browser_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.name: path.read_text() for path in site.rglob("*.html")}
    styles = [path.read_text() for path in site.rglob("*.css")]

    assert {
        name: FETCHED.findall(text) for name, text in pages.items() if FETCHED.search(text)
    } == {}
    assert not [text for text in styles if re.search(r"@import|url\([\"']?(https?:)?//", text)]


@pytest.mark.slow
def test_the_search_knows_every_part(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {each["location"].partition("#")[0]: each["text"] for each in index["docs"]}

    for page in ("tutorial", "how-to/from-sqs", "explanation/leases", "limits", "cli", "loads"):
        assert f"{page}.html" in found, page


def nav_cut_off() -> str:
    text, found, _ = CONFIG.read_text().partition("\nnav:\n")
    assert found
    return text.replace("scripts/", f"{ROOT}/scripts/")


@pytest.mark.slow
@pytest.mark.parametrize("link", ["gone.md", "#gone", "/absolute.md"])
def test_a_broken_link_fails_the_build(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n[a page]({link})\n")
    (tmp_path / "mkdocs.yml").write_text(nav_cut_off())

    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")

    assert built.returncode != 0
    assert link in built.stderr


class _File:
    def __init__(self, src_uri: str) -> None:
        self.file, self.src_uri = self, src_uri


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("metrics.md", "[alerts](../deploy/alerts.yml)", "`deploy/alerts.yml`"),
        ("how-to/x.md", "[words](../glossary.md)", "[words](../glossary.md)"),
        ("how-to/x.md", "[unit](../../deploy/a.service)", "`deploy/a.service`"),
        ("client.md", "[other](topics.md#a)", "[other](topics.md#a)"),
    ],
)
def test_files_that_the_site_does_not_have_are_named(page: str, text: str, shown: str) -> None:
    assert on_page_markdown(f"See {text}.", page=_File(page)) == f"See {shown}."


def test_the_navigation_has_the_four_parts_in_order() -> None:
    parts = re.findall(r"^  - (\w[\w-]*):", CONFIG.read_text().partition("\nnav:\n")[2], re.M)

    assert parts == ["Home", "Tutorial", "How-to", "Explanation", "Reference"]
