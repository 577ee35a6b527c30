"""What the tests of the documentation need of a Markdown page: code blocks, commands, headings, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block: the words after the fence, its text, and the line it begins on."""

    info: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command line of a console block, with the output that is shown below it."""

    line: str
    output: str


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["info"].strip(), found["body"], text.count("\n", 0, found.start()) + 1)
        for found in _BLOCK.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """The commands of a console block: lines that begin with "$ ", continued after a backslash."""
    found: list[Command] = []
    lines = iter(block.body.replace("\\\n", " ").splitlines())
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ""))
        else:
            last = found.pop()
            found.append(Command(last.line, f"{last.output}{line}\n"))
    return found


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead, code left out."""
    return _LINK.findall(_without_code(page))


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make, as GitHub writes them."""
    return {_anchor(heading) for heading in _HEADING.findall(_without_code(page))}


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").casefold())
    return kept.replace(" ", "-")


def _without_code(page: Path) -> str:
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))
