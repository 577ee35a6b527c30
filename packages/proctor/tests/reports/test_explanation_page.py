"""The page of an explained gap in a browser: what it shows, offline and on a phone, also of hostile logs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import proctor
from tests.support.chromium import open_page
from tests.support.explained_runs import JUDGES, planted, questions

HOSTILE = "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def gap_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and a log whose prompts are hostile."""
    folder = tmp_path_factory.mktemp("gap")
    store = planted(folder / "s.db", ("reader",))
    rows: list[dict[str, Any]] = [
        {"id": item.id, "prompt": f"{item.question}\n{HOSTILE}", "answer": "Answer: A", "correct": number % 2}
        for number, item in enumerate(questions().items)
        if item.options
    ]
    log, other = folder / "a.jsonl", folder / "b.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    other.write_text("".join(json.dumps({**row, "prompt": row["prompt"] + " Think."}) + "\n" for row in rows))
    proctor.explain(log, other, store=store, scorer=["correct", "code"], draws=100).write(folder / "logs.html")
    proctor.explain("second", log, store=store, scorer=[JUDGES[0], "correct"], draws=100).write(folder / "run.html")
    return folder


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_parts_and_differences(chromium: str, gap_page: Path, width: int) -> None:
    async def work() -> list[dict[str, Any]]:
        found = []
        async with open_page(chromium, f"--window-size={width},900") as page:
            for name in ("logs.html", "run.html"):
                await page.open((gap_page / name).as_uri())
                wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                found.append({"text": await page.text(), "wide": await page.evaluate(wide)})
                found[-1]["title"] = await page.evaluate("document.title")
                found[-1]["figures"] = await page.evaluate("document.querySelectorAll('svg').length")
            assert page.complaints == []
            assert all(one.startswith("file:") for one in page.requests)
        return found

    logs, run = asyncio.run(work())
    for one in (logs, run):
        assert one["wide"] <= 0
        assert "owned" not in one["title"]
        assert one["figures"] > 0
        assert "All: the gap" in one["text"]
        assert "Reader of replies" in one["text"]
    assert "document.title = 'owned'" in logs["text"]  # the prompt's lines, as text
    assert "prompt as sent" in logs["text"]
    assert "not recorded" in run["text"]
