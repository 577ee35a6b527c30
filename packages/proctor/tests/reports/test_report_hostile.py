"""Every text is hostile: names, questions, answers, judgements. None of them may run, load, or rearrange the page."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from typing import Any

import pytest

from proctor.reports import ReportSummary, write_report
from proctor.reports.renderers import embedded_json
from proctor.results import Options
from tests.support.chromium import open_page
from tests.support.hostile_store import TEXTS, hostile_store
from tests.support.report_store import JPEG


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    folder = tmp_path_factory.mktemp("hostile")
    store = hostile_store(folder)
    options = Options(draws=100)
    return write_report(
        store,
        "hostile",
        folder / "hostile.html",
        options=options,
        thumbnails=lambda item: [(item.question[:300], JPEG)],
    )


class _Attributes(HTMLParser):
    """The names of all attributes, and how links begin."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {name for name, _ in attrs}
        self.links |= {(value or "")[:1] for name, value in attrs if name == "href"}


def test_the_raw_page_has_no_foreign_markup(hostile: ReportSummary) -> None:
    text = hostile.path.read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert text.count("<style>") == text.count("</style>") == 1
    assert "<img" not in text
    found = _Attributes()
    found.feed(text)
    assert not {name for name in found.names if name.startswith("on") or name in {"src", "style", "srcdoc"}}
    assert found.links <= {"#"}
    for name in ("direction", "control"):
        assert TEXTS[name] not in text
    assert not set(text) & set("\x00\x1b\x85\u202e\u2066\r")


def test_long_texts_are_cut_where_they_stand(hostile: ReportSummary) -> None:
    assert any("texts shortened to 4000 characters" in line for line in hostile.left_out)
    assert hostile.bytes < 6_000_000


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_embedded_json_is_the_same_data_without_markup(text: str) -> None:
    shown = embedded_json({"text": text, text: 1})
    assert json.loads(shown) == {"text": text, text: 1}
    assert not set(shown) & set("<>&\u2028\u2029")


async def _watch(chromium: str, hostile: ReportSummary) -> dict[str, Any]:
    async with open_page(chromium) as page:
        await page.open(hostile.path.as_uri())
        found: dict[str, Any] = {"opened": [], "count": await page.evaluate(_text("#count"))}
        for row in range(len(TEXTS)):
            await page.evaluate(f"document.querySelectorAll('.list button')[{row}].click()")
            found["opened"].append(await page.evaluate(_text("#detail .question")))
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        await page.evaluate("new Promise((done) => { setTimeout(done, 300); })")
        found["pwned"] = await page.evaluate("document.documentElement.dataset.pwned || ''")
        found["scripts"] = await page.evaluate("document.scripts.length")
        found["links"] = await page.evaluate(
            "[...document.querySelectorAll('a')].filter((a) => !a.getAttribute('href').startsWith('#')).length"
        )
        found["title"] = await page.evaluate("document.title")
        found["handlers"] = await page.evaluate(
            "[...document.querySelectorAll('*')].filter((e) => e.getAttributeNames().some((n) => "
            "n.startsWith('on'))).length"
        )
        found |= {"requests": page.requests, "complaints": page.complaints}
        return found


def _text(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)}).textContent"


def test_nothing_runs_and_nothing_is_asked_for(chromium: str, hostile: ReportSummary) -> None:
    found = asyncio.run(_watch(chromium, hostile))
    assert found["pwned"] == ""
    assert found["count"] == f"{len(TEXTS)} of {len(TEXTS)} items"
    assert (found["scripts"], found["links"], found["handlers"]) == (2, 0, 0)
    assert found["title"] == f"{TEXTS['script']}: report"
    assert found["requests"][0] == hostile.path.as_uri()
    assert all(url.startswith("data:image/jpeg;base64,") for url in found["requests"][1:])
    assert found["complaints"] == []
    shown = dict(zip(TEXTS, found["opened"], strict=True))
    for name in ("script", "image", "svg", "style", "link", "template", "math", "comment", "other script"):
        assert shown[name] == TEXTS[name]
    assert shown["direction"] == "safe \ufffdtxet sdrawkcab\ufffd after"
    assert shown["control"] == "a\ufffdb\ufffd[31mc\ufffdd"
    assert shown["endless"] == "x" * 4000 + " … (cut here; 16000 more characters)"
