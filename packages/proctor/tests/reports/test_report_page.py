"""The page as a file: its structure, its numbers, its size, and that nothing in it leads outside."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from proctor.audits.items import audit_items
from proctor.core import Answer, InputError, Item, Status
from proctor.media import CONDITIONS
from proctor.reports import ReportSummary, write_report
from proctor.reports.leaderboard import condition_line
from proctor.results import Options, leaderboard
from proctor.runs import Store
from tests.support.browser_items import data_of
from tests.support.report_store import JPEG, a_benchmark, fill

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """The page as elements: every start tag with its attributes, the text of every element that has an
    id or is a script, and whether all tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.page = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.rows: list[list[str]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, [tag for tag, _, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag not in VOID:
            self._open.append((tag, dict(attrs), []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        name, attributes, text = self._open.pop()
        assert name == tag, f"<{name}> is closed by </{tag}>"
        self.texts.append((name, attributes, text))
        if tag in {"td", "th"}:
            self.rows[-1].append("".join(text))

    def handle_data(self, data: str) -> None:
        for _, _, text in self._open:
            text.append(data)

    def text_of(self, tag: str, **wanted: str) -> str:
        return next(
            "".join(text)
            for name, attributes, text in self.texts
            if name == tag and all(attributes.get(key) == value for key, value in wanted.items())
        )

    def data(self) -> Any:
        return data_of(self.page)


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return Page(report.read_text(encoding="utf-8"))


def test_sections_come_in_order_each_with_a_title_and_a_link(page: Page, written: ReportSummary) -> None:
    keys = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    assert keys == [
        "summary",
        "leaderboard",
        "facets",
        "analysis",
        "conditions",
        "gains",
        "crossings",
        "consumption",
        "statuses",
        "items",
        "provenance",
    ]
    assert sorted(["summary", "items", *written.sections]) == sorted(str(key) for key in keys)
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert links == ["#main", *(f"#{key}" for key in keys[1:])]
    assert re.search(r"Items and answers\s+48", page.text_of("nav"))
    assert re.search(r"Completion\s+16", page.text_of("nav"))  # one failed, late, refused and unreadable by condition
    assert ("html", {"lang": "en"}) in page.elements


def test_subgroups_are_drawn_for_the_first_condition_and_folded_for_the_others(report: Path) -> None:
    section = report.read_text(encoding="utf-8").partition('<section id="facets"')[2].partition("</section>")[0]
    drawn = re.findall(r"<title[^>]*>([^<]+)</title>", section)
    assert any(title.startswith("Accuracy by phase, video") for title in drawn)
    assert not any(condition in title for title in drawn for condition in ("text-only", "black", "shuffled"))
    folded = section.partition("Other conditions and metrics by phase")[2]
    assert "Accuracy by phase, shuffled" in folded
    assert set(re.findall(r"groups, (\d+) failed", section)) == {"1"}


def test_the_head_says_what_it_is(page: Page, store: Store) -> None:
    head, last = page.text_of("header"), page.text_of("section", id="provenance")
    assert "Toy procedures SIMULATED" in head
    assert "2 systems and 1 baseline on 48 items in 12 groups, under video, text-only, black, shuffled." in head
    assert store.fingerprint("toy") in last
    assert "options 3; resampling 0 (2\u202f000 draws)" in last
    assert "an incomplete run's score is a range: items without one counted as wrong … left out" in last
    assert re.search(r"Newest run\s*20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", last)
    assert "Every procedure was drawn by a program." in page.text_of("section", id="provenance")
    assert "looker was run by hand" in page.text_of("section", id="provenance")


def test_the_first_screen_answers_the_three_questions(page: Page, store: Store) -> None:
    """Its numbers are those of the leaderboard and of the comparisons; the sections below are folded."""
    said = page.text_of("section", id="summary").replace("\u00a0", " ")
    row = leaderboard(store, "toy", condition="video").rows[0]
    low, high = (f"{100 * end:.1f}" for end in (row.ci_low or 0.0, row.ci_high or 0.0))
    assert f"looker has the best accuracy under video: 88.1 % … 90.2 % (95 % CI {low} to {high})." in said
    assert re.search(r"Yes: with the video looker scores higher than on the text alone, by \+\d+\.\d pts", said)
    assert "Systems that score significantly higher with the video: 1 of 2." in said
    assert "Guessing at random reaches 25.0 %; looker is above it." in said
    assert "The best text-only score is 69.0 % (guesser)" in said
    folded = [attributes for tag, attributes in page.elements if tag == "details" and attributes.get("class") == "fold"]
    assert len(folded) == 8
    assert not any("open" in one for one in folded)


def test_ids_are_unique_and_labels_lead_somewhere(page: Page) -> None:
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert {name: count for name, count in ids.items() if count > 1} == {}
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "href", "xlink:href"):
            for target in (attributes.get(name) or "").split():
                assert target.lstrip("#") in ids


def test_every_drawing_has_a_title_and_a_description(page: Page, report: Path) -> None:
    drawings = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]
    assert len(drawings) >= 8
    text = report.read_text(encoding="utf-8")
    assert text.count('role="img"') == text.count("<title id=") == text.count("<desc id=")
    assert "looker: video 88.1 %, text-only 23.8 %" in page.text_of("desc", id="conditions-0-d")


def test_nothing_leads_outside(report: Path, page: Page) -> None:
    text = report.read_text(encoding="utf-8")
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "img"}
        assert not any(name.startswith("on") or name in {"style", "src"} for name in attributes), (tag, attributes)


def test_the_policy_allows_exactly_what_is_there(page: Page) -> None:
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    scripts = [text for name, attributes, text in page.texts if name == "script" and "type" not in attributes]
    styles = [text for name, _, text in page.texts if name == "style"]
    for kind, parts in (("script-src", scripts), ("style-src", styles)):
        (one,) = parts
        digest = base64.b64encode(hashlib.sha256("".join(one).encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_the_leaderboard_is_that_of_the_runs(page: Page, store: Store) -> None:
    board = leaderboard(store, "toy", condition="video")
    top = next(row for row in page.rows if row[:1] == ["looker"])
    columns = next(row for row in page.rows if row[:3] == ["System", "Condition", "Rank"])
    assert columns == ["System", "Condition", "Rank", "Rank, 95 % CI", "Accuracy", "95 % CI", "Missing"]
    assert top[:3] == ["looker", "video", str(board.rows[0].rank)]
    assert (board.rows[0].value, board.rows[0].lacking) == (None, 1)
    assert top[4] == "88.1 % … 90.2 %"  # 37 right of 41 answers, and one that failed
    assert top[6] == "1 failed"
    assert (board.items, board.left_out) == (42, 0)
    said = page.text_of("section", id="leaderboard")
    assert "Such a run has a rank only if its missing items can't change any." in said
    assert "Accuracy on 42 items in 12 groups." in said  # the same for all: said once, in no column


def test_every_table_row_has_as_many_cells_as_its_head(report: Path) -> None:
    for table in re.findall(r"<table>.*?</table>", report.read_text(encoding="utf-8"), flags=re.DOTALL):
        widths = {len(row) for row in Page(table).rows}
        assert len(widths) == 1


def test_chance_is_drawn_where_options_give_it(page: Page) -> None:
    said = page.text_of("section", id="leaderboard")
    assert said.count("chance 25.0 %") == 1  # one chart for all conditions; the judge's scores have no chance level


def test_looking_and_guessing_are_told_apart(page: Page) -> None:
    rows = {
        tuple(row[:2]): row
        for row in reversed(page.rows)
        if len(row) == 10 and row[1] in {"video", "black", "shuffled"}
    }
    looker, guesser = rows["looker", "video"], rows["guesser", "video"]
    assert looker[2].startswith("+")
    assert float(looker[6]) < 0.05
    assert float(guesser[6]) > 0.05
    assert "adjusted for the 9 comparisons with text-only" in page.text_of("section", id="conditions")


def test_unknown_is_not_zero(page: Page) -> None:
    rows = [row for row in page.rows if len(row) == 7 and row[1] == "video"]
    by_system = {row[0]: row for row in rows if row[2] in {"–", "48"}}
    assert by_system["random"][2:] == ["–", "–", "–", "–", "–"]
    assert by_system["looker"][2:] == ["48", "43\u202f200", "0", "960", "$0.0480"]


def test_the_browser_has_every_answer(page: Page) -> None:
    data = page.data()
    assert len(data["items"]) == 48
    assert len(data["runs"]) == 12
    assert all(len(item["answers"]) == 12 for item in data["items"])
    assert sum(judgement["flags"] == ["contradiction"] for judgement in data["judgements"]) == 4
    first = data["items"][3]
    assert (first["keys"], first["options"][3]) == (["D"], "clip applier")
    outcomes = Counter(answer["outcome"] for item in data["items"] for answer in item["answers"])
    assert outcomes["unscored"] == 4  # the failed ones, and nothing else
    assert [name for name, _, _ in data["facets"]] == ["phase", "length", "guessable", "format"]
    assert data["facets"][1][2] == ["0-5 s", "5-10 s", "10-20 s"]


def test_the_same_store_gives_the_same_bytes(store: Store, report: Path, tmp_path: Path) -> None:
    again = write_report(store, "toy", tmp_path / "again.html")
    assert again.path.read_bytes() == report.read_bytes()
    assert again.bytes == report.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def _three_pictures(item: Item) -> list[tuple[str, bytes]]:
    large = JPEG[:3] + b"x" * 128 * 1024
    return [(f"first of {item.id}", JPEG), ("no picture", b"GIF89a"), ("large", large)]


def test_limits_are_kept_and_said(store: Store, tmp_path: Path) -> None:
    found = write_report(store, "toy", tmp_path / "small.html", max_items=5, thumbnails=_three_pictures)
    assert (found.items, found.answers, found.pictures) == (5, 60, 5)
    assert found.left_out == (
        "43 of 48 items are left out of the browser (proctor export writes all); the numbers above count them.",
        "10 pictures left out: too large, no JPEG, or not readable.",
    )
    page = Page(found.path.read_text(encoding="utf-8"))
    for line in found.left_out:
        assert line in page.text_of("section", id="items")
    assert page.data()["items"][0]["pictures"] == [["first of q000", base64.b64encode(JPEG).decode()]]
    assert "88.1 % … 90.2 %" in page.text_of("section", id="leaderboard")  # of all items, whatever the browser holds


def test_a_report_without_items_says_that_they_are_left_out(store: Store, tmp_path: Path) -> None:
    found = write_report(store, "toy", tmp_path / "none.html", max_items=0, options=Options(draws=100))
    page = Page(found.path.read_text(encoding="utf-8"))
    assert "48 of 48 items are left out of the browser" in page.text_of("section", id="items")
    assert not any(attributes.get("id") == "browser" for _, attributes in page.elements)


def test_one_condition_gives_tables_of_systems_instead(store: Store, tmp_path: Path) -> None:
    found = write_report(store, "toy", tmp_path / "one.html", options=Options(conditions=("video",), draws=200))
    assert "conditions" not in found.sections
    page = Page(found.path.read_text(encoding="utf-8"))
    assert "looker / video (rows) and guesser / video (columns): items by outcome." in page.text_of(
        "section", id="crossings"
    )


def test_the_item_audit_has_its_section(store: Store, tmp_path: Path) -> None:
    audit = audit_items(store.items("toy"), draws=200)
    found = write_report(store, "toy", tmp_path / "audit.html", audit=audit, options=Options(draws=200))
    page = Page(found.path.read_text(encoding="utf-8"))
    said = page.text_of("section", id="audit")
    assert "The best text-only accuracy is" in said
    assert "Where the right option stands, of 4." in said
    assert "free text: 6 items" in said


def test_real_answers_give_the_published_counts(data: Path, tmp_path: Path) -> None:
    import asyncio

    from proctor.metrics import AccuracyScorer
    from proctor.runs import import_answers
    from proctor.tasks.rexsonovqa import READER

    benchmark = READER.load(data / "rexsonovqa")
    store = Store(tmp_path / "real.db")
    trees = sorted((data / "rexsonovqa" / "results").iterdir())
    for tree in trees:
        recorded = READER.read_recorded(tree, benchmark)
        scorers = [AccuracyScorer()]
        asyncio.run(import_answers(store, benchmark, recorded, name=tree.name, condition="video", scorers=scorers))
    found = write_report(store, "rexsonovqa", tmp_path / "real.html", options=Options(draws=200))
    page = Page(found.path.read_text(encoding="utf-8"))
    assert (found.items, found.answers) == (514, 1542)
    assert found.bytes < 4_000_000
    totals = [row[-1] for row in page.rows if row[0] in {"correct", "incorrect"}]
    assert {"165", "138"} <= set(totals)
    flagged = [judgement for judgement in page.data()["judgements"] if judgement["flags"]]
    assert len(flagged) == 14  # 11, 1 and 2


def test_bad_input_is_one_line_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty.db")
    empty.add_benchmark(a_benchmark())
    with pytest.raises(InputError, match=r"benchmark toy: found no run, expected at least one$"):
        write_report(empty, "toy", tmp_path / "none.html")
    with pytest.raises(InputError, match="expected a writable path"):
        write_report(store, "toy", tmp_path / "empty.db" / "x.html", options=Options(draws=100))
    with pytest.raises(InputError, match="no run with the system 'nobody'"):
        write_report(store, "toy", tmp_path / "none.html", options=Options(systems=("nobody",)))
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db", ".db-wal", ".db-shm"}


def test_many_systems_stay_legible(tmp_path: Path) -> None:
    store = Store(tmp_path / "many.db")
    shares = {f"system-{number:02d}": {"video": number / 25, "text-only": 0.25} for number in range(25)}
    fill(store, a_benchmark(items=16, groups=4), shares=shares)
    found = write_report(store, "toy", tmp_path / "many.html", options=Options(draws=100))
    text = found.path.read_text(encoding="utf-8")
    heights = [int(height) for height in re.findall(r'viewBox="0 0 960 (\d+)"', text)]
    assert min(heights) >= 25 * 20  # a row of its own for each system, in every drawing


def test_a_store_with_nothing_but_failures_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "failed.db")
    benchmark = a_benchmark(items=8, groups=4)
    store.add_benchmark(benchmark)
    run = store.start_run("toy", "down", "video", {})
    store.write(run, [(Answer(item_id=item.id, status=Status.FAILED, reason="429"), []) for item in benchmark.items])
    found = write_report(store, "toy", tmp_path / "failed.html")
    page = Page(found.path.read_text(encoding="utf-8"))
    assert "All answered" not in page.text_of("section", id="leaderboard")
    row = next(row for row in page.rows if row[0] == "down")
    assert row[4:] == ["no score", "–", "7 failed"]  # of the questions that accuracy scores


def test_every_condition_is_explained() -> None:
    for name in CONDITIONS.names():
        assert condition_line(name) == f"{name}: {CONDITIONS.get(name).summary}"
    assert len(CONDITIONS.names()) >= 7
    assert condition_line("of-no-installed-package") == "of-no-installed-package"
