"""What people read in this repository: pages, and the comments, docstrings and texts of code."""

from __future__ import annotations

import io
import tokenize
from functools import cache
from pathlib import Path

from tests.support.paths import PACKAGES, ROOT


@cache
def pages() -> list[Path]:
    """Everything that people read, but for prompts, which are frozen."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "AGENTS.md")]
    for folder in (*(f"packages/{name}/src" for name in PACKAGES), "docs", "bench", "tools"):
        found += [
            file
            for file in sorted((ROOT / folder).rglob("*"))
            if file.suffix in {".py", ".md", ".js", ".html", ".yaml"} or file.name.endswith((".html.j2", "llms.txt"))
        ]
    return found


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def prose_of(name: str, text: str) -> str:
    """The text of a file, each word on its own line of the file. Of Python, comments and strings with a blank alone:
    names and keys are not prose."""
    if not name.endswith(".py"):
        return text
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in TEXTS and (token.type == tokenize.COMMENT or " " in token.string):
            for number, line in enumerate(token.string.split("\n"), start=token.start[0] - 1):
                lines[number] += f" {line}"
    return "\n".join(lines)
