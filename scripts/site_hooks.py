"""What MkDocs calls while it builds the site.

Pages link to files of the repository beside `docs/`, such as those of `deploy/`. On GitHub these
links lead somewhere; the site does not have the files, so it shows their names.
"""

import re
from typing import Any

_FILE_OF_THE_REPOSITORY = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)(?!docs/)([\w./-]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called for each page; returns what is rendered in place of its text."""
    depth = page.file.src_uri.count("/") + 1

    def named(link: re.Match[str]) -> str:
        leaves_docs = link[2].count("../") >= depth
        return f"`{link[3]}`" if leaves_docs else link[0]

    return _FILE_OF_THE_REPOSITORY.sub(named, markdown)
