"""Every block of the documentation that is marked `run` is run, in its page's order: what a `console` or a `pycon`
block shows is compared, `python` blocks run as they stand, all in one namespace, and a block with a title is the file of
that name."""

from __future__ import annotations

import doctest
import io
import math
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from tests.support.markdown import Block, blocks, commands
from tools.docs import ROOT, pages

_FILE = re.compile(r'\w+ run title="(?P<path>[\w./-]+)"')


def runnable(page: Path) -> list[Block]:
    kinds = {"console run", "python run", "pycon run"}
    return [block for block in blocks(page) if block.info in kinds or _FILE.fullmatch(block.info)]


PAGES = [page for page in pages() if any(not _FILE.fullmatch(block.info) for block in runnable(page))]


def called(words: list[str]) -> tuple[int, str]:
    """The exit code of a command, and all that a terminal would show."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        patch.setattr(sys, "argv", words)
        patch.setattr("proctor.cli.output._EVERY_S", math.inf)  # no line that depends on the clock
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            return code, out.getvalue()
    return 0, out.getvalue()


def agrees(shown: str, said: str) -> bool:
    """Whether the shown text is the said one, spaces aside; "..." stands for anything."""
    parts = (re.escape(part.strip()) for part in " ".join(shown.split()).split("..."))
    return re.fullmatch(".*?".join(parts), " ".join(said.split()), re.DOTALL) is not None


def run_python(page: Path, block: Block, names: dict[str, Any]) -> None:
    """Runs a block of Python. In one of `pycon`, "..." stands for anything, as in doctests everywhere."""
    if block.info == "python run":
        exec(compile(block.body, f"{page.name}:{block.line}", "exec"), names)
        return
    told: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(block.body, names, page.name, str(page), block.line)
    example.globs = names  # not a copy: the next block goes on with it
    failed, _ = doctest.DocTestRunner(optionflags=flags).run(example, out=told.append, clear_globs=False)
    assert not failed, "".join(told)


@pytest.mark.pages
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_shows_what_happens(page: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PROCTOR_STORE", "PROCTOR_CACHE", *(name for name in os.environ if name.endswith("_API_KEY"))):
        monkeypatch.delenv(name, raising=False)
    for folder in data.iterdir():
        (tmp_path / folder.name).symlink_to(folder)
    code = 0
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in runnable(page):
        if (file := _FILE.fullmatch(block.info)) is not None:
            (tmp_path / file["path"]).write_text(block.body, encoding="utf-8")
            continue
        if block.info != "console run":
            run_python(page, block, names)
            continue
        for command in commands(block):
            if command.line == "echo $?":
                said = f"{code}\n"
            else:
                code, said = called(shlex.split(command.line))
                assert code == 0 or "echo $?" in block.body, said
            assert agrees(command.output, said), f"{page.name}:{block.line}: {command.line}\n{said}"


def test_what_is_shown_is_compared() -> None:
    assert agrees("66.3 %  ...\n", "66.3 % 58.9 to 73.4\n")
    assert not agrees("66.3 %\n", "66.3 % 58.9 to 73.4\n")
    assert not agrees("66.3 %  ...\n", "66.4 % 58.9 to 73.4\n")
    assert not agrees("", "something\n")
