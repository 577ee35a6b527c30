"""One number, one text: the terminal, JSON, CSV, frames, notebooks and the page of one evaluation are crawled, and a figure
that stands in several of them (score, interval, p, rank, count) is the same in all."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import ACCURACY, HEADS, Metric, difference, interval, p_value, rank_range, value
from proctor.reports import write_report
from proctor.results import Options
from proctor.runs import Store
from tests.support import report_store
from tests.support.program import proctor as shell
from tests.support.report_store import CONDITIONS, HELPFUL

Record = Mapping[str, Any]
Key = tuple[str, ...]

METRICS: dict[str, Metric] = {metric.name: metric for metric in (ACCURACY, HELPFUL)}
BY_LABEL = {metric.label: metric.name for metric in METRICS.values()}
DRAWS, SEED = 300, 0


class Figures:
    """Every figure that was read: by what it is of, and by the output where it stands."""

    def __init__(self) -> None:
        self.read: dict[Key, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, location: str, key: Key, text: str) -> None:
        self.read[key][location].add(text)

    def pair(self, location: str, metric: str, sides: tuple[str, str], texts: Mapping[str, str]) -> None:
        """The figures of a difference; the pair stands in the order of its names."""
        if sides[0] > sides[1]:
            sides = (sides[1], sides[0])
            texts = {name: turned(text) if name in {"difference", "ci"} else text for name, text in texts.items()}
        for name, text in texts.items():
            self.add(location, (f"{name} of a pair", metric, *sides), text)

    def differing(self) -> dict[Key, dict[str, set[str]]]:
        return {key: dict(found) for key, found in self.read.items() if len(set().union(*found.values())) > 1}

    def shared_by(self, location: str) -> int:
        """How many figures stand in this output and in another one."""
        return sum(location in found and len(found) > 1 for found in self.read.values())


def turned(text: str) -> str:
    """The figures of a pair the other way round."""
    low, to, high = text.partition(" to ")
    if to:
        return f"{turned(high).removeprefix('+')} to {turned(low).removeprefix('+')}"
    number, unit, rest = text.partition(" ")
    if not number.strip("+−0."):
        return text
    flipped = number[1:] if number[0] in "+−" else number
    sign = "−" if number[0] != "−" else "+"
    return f"{sign}{flipped}{unit}{rest}"


def test_a_pair_is_turned() -> None:
    assert (turned("+5.0 pts"), turned("−5.0 pts"), turned("0.0 pts")) == ("−5.0 pts", "+5.0 pts", "0.0 pts")
    assert (turned("+0.67"), turned("−0.67")) == ("−0.67", "+0.67")
    assert (turned("1.2 to 19.5"), turned("−3.0 to 0.0")) == ("−19.5 to −1.2", "0.0 to 3.0")


class Tables(HTMLParser):
    """The tables of a page: the section, the caption, the heads, and the rows of each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, list[str], list[list[str]]]] = []
        self.section, self._caption = "", ""
        self._text: list[str] | None = None
        self._small = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section" and given.get("id"):
            self.section = str(given["id"])
        if tag in {"b", "p", "td", "th"}:
            self._text = []
        self._small += tag == "small"
        if tag == "table":
            self.found.append((self.section, self._caption, [], []))
        if tag == "tr" and self.found:
            self.found[-1][3].append([])

    def handle_data(self, data: str) -> None:
        if self._text is not None and not self._small:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._small -= tag == "small"
        text = " ".join("".join(self._text or ()).split(" "))
        if tag in {"b", "p"} and text.strip():
            self._caption = text.strip()
        if tag in {"td", "th"} and self.found and self.found[-1][3]:
            self.found[-1][3][-1].append(text.strip())

    def records(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """The section, the caption and the cells by head, of each row."""
        for section, caption, _, rows in self.found:
            heads = rows[0] if rows else []
            for row in rows[1:]:
                if len(row) == len(heads):
                    yield section, caption, dict(zip(heads, row, strict=True))


def printed(out: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The title and the cells by head of each row that the terminal shows."""
    title, heads = "", list[str]()
    lines = out.splitlines()
    for number, line in enumerate(lines):
        cells = re.split(r" {2,}", line.strip())
        if len(cells) == 1:
            title, heads = line.strip() or title, []
        elif not heads:
            heads = cells
        else:
            yield title, dict(zip(heads, cells, strict=False))
        if not line.strip() and number + 1 < len(lines):
            heads = []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems under four conditions, all answered: an incomplete run has a range, which not all outputs show."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_store, "FATES", {})
        report_store.a_store(folder)
    return folder / "toy.db"


@pytest.fixture(scope="module")
def figures(store: Path) -> Figures:
    """All figures of all outputs."""
    read = Figures()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PROCTOR_STORE", raising=False)
        _scores(read, store)
        _ranks(read, store)
        _pairs(read, store)
        _page(read, store)
    return read


def _asked(store: Path, command: str, *options: str) -> dict[str, str]:
    """What a command prints in each format."""
    given: tuple[str | Path, ...] = (
        command,
        "toy",
        "--store",
        store,
        "--draws",
        str(DRAWS),
        "--seed",
        str(SEED),
        *options,
    )
    found = {form: shell(*given, "--format", form) for form in ("table", "json", "csv")}
    assert {one.returncode for one in found.values()} == {0}, found["table"].stderr
    return {form: one.stdout for form, one in found.items()}


def _records(told: Mapping[str, str]) -> Iterator[tuple[str, Record]]:
    """The records of JSON and of CSV."""
    for row in json.loads(told["json"]):
        yield "json", row
    for row in csv.DictReader(io.StringIO(told["csv"])):
        yield "csv", {name: None if text == "" else number(text) for name, text in row.items()}


def number(text: str) -> Any:
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _frame(table: Any) -> Iterator[Record]:
    frame = table.to_pandas()
    yield from frame.astype(object).where(frame.notna(), None).to_dict("records")


def _score(read: Figures, location: str, row: Record) -> None:
    metric, where = METRICS.get(row["metric"]), (row["metric"], row["system"], row["condition"])
    if metric is None or not row["scorer"]:
        return
    read.add(location, ("score", *where), value(metric, row["value"]))
    read.add(location, ("ci", *where), interval(metric, row["ci_low"], row["ci_high"]))
    for name in ("n", "groups", "answered", "failed"):
        read.add(location, (name, *where), str(int(row[name])))


COUNTS = {HEADS["n"]: "n", HEADS["groups"]: "groups", "Answered": "answered", "Failed": "failed"}


def _shown_score(read: Figures, location: str, where: Key, row: Mapping[str, str], score: str) -> None:
    """The figures of a row that is shown; `score` is the head of its score."""
    read.add(location, ("score", *where), row[score])
    if HEADS["ci"] in row:
        read.add(location, ("ci", *where), row[HEADS["ci"]])
    for head, name in COUNTS.items():
        if head in row:
            read.add(location, (name, *where), row[head])


def _metric_of(title: str) -> str:
    return next((name for label, name in BY_LABEL.items() if f": {label}" in title or title.startswith(label)), "")


def _scores(read: Figures, store: Path) -> None:
    told = _asked(store, "results")
    table = proctor.results(store, "toy", draws=DRAWS, seed=SEED)
    for location, row in _records(told):
        _score(read, f"results, {location}", row)
    for row in _frame(table):
        _score(read, "results, frame", row)
    shown = [("results, terminal", *one) for one in printed(told["table"])]
    shown += [("results, notebook", title, row) for _, title, row in Tables(table._repr_html_()).records()]
    for location, title, row in shown:
        metric = _metric_of(title)
        if metric and HEADS["value"] in row and "," not in row.get("Condition", ","):
            _shown_score(read, location, (metric, row["System"], row["Condition"]), row, HEADS["value"])


def _ranks(read: Figures, store: Path) -> None:
    for condition in CONDITIONS:
        for metric, declared in METRICS.items():
            told = _asked(store, "rank", "--metric", metric, "--condition", condition)
            table = proctor.leaderboard(store, "toy", metric, condition=condition, draws=DRAWS, seed=SEED)
            rows = [("rank, frame", row) for row in _frame(table)]
            for position, row in [*((f"rank, {position}", row) for position, row in _records(told)), *rows]:
                where = (metric, str(row["system"]), condition)
                read.add(position, ("rank", *where), rank_range(row["rank"], row["rank"]))
                read.add(position, ("rank ci", *where), rank_range(row["rank_low"], row["rank_high"]))
                read.add(position, ("score", *where), value(declared, row["value"]))
                read.add(position, ("ci", *where), interval(declared, row["ci_low"], row["ci_high"]))
            shown = [("rank, terminal", row) for _, row in printed(told["table"])]
            shown += [("rank, notebook", row) for *_, row in Tables(table._repr_html_()).records()]
            for position, cells in shown:
                _shown_rank(read, position, (metric, cells["System"], condition), cells, HEADS["value"])


def _shown_rank(read: Figures, location: str, where: Key, row: Mapping[str, str], score: str) -> None:
    _shown_score(read, location, where, row, score)
    read.add(location, ("rank", *where), row[HEADS["rank"]])
    read.add(location, ("rank ci", *where), row[HEADS["rank_ci"]])


def _pair(read: Figures, location: str, row: Record) -> None:
    sides = [f"{row[f'{side}_system']} / {row[f'{side}_condition']}" for side in ("first", "second")]
    metric = METRICS.get(row["metric"])
    if metric is not None:
        _pair_of(read, location, metric, (sides[0], sides[1]), row)


def _pair_of(read: Figures, location: str, metric: Metric, sides: tuple[str, str], row: Record) -> None:
    texts = {
        "difference": difference(metric, row["difference"]),
        "ci": interval(metric, row["ci_low"], row["ci_high"]),
        "p": p_value(row["p"]),
        "p holm": p_value(row["p_holm"]),
    }
    texts |= {"family": str(row["adjusted_for"])} if row.get("adjusted_for") else {}
    if not row["decides"]:
        texts |= {"p": f"{int(row['groups'])} groups can't decide", "p holm": "–"}
        texts.pop("family", None)
    read.pair(location, metric.name, sides, texts | {"n": str(int(row["n"]))})


SENTENCE = re.compile(
    r"(?:^|: )(?P<first>\w+ / [\w-]+) minus (?P<second>\w+ / [\w-]+) (?P<difference>\S+(?: pts)?) "
    r"\(95 % CI (?P<ci>[^)]*)\), (?:p )?(?P<p>[^;]+); (?:(?P<holm>[^;]+) adjusted for (?P<family>[^;]+); )?(?P<n>\d+) items"
)


def _pairs(read: Figures, store: Path) -> None:
    of_systems = ("--system", "looker", "--system", "guesser", "--condition", "video")
    for position, options in (("conditions", ()), ("systems", of_systems), ("all systems", ("--condition", "video"))):
        told = _asked(store, "compare", *options)
        chosen: dict[str, Any] = {}
        if options:
            chosen = {"conditions": "video", "systems": ("looker", "guesser") if position == "systems" else ()}
        table = proctor.compare(store, "toy", draws=DRAWS, seed=SEED, **chosen)
        for row in json.loads(told["json"]):
            sides = {f"{side}_{name}": row[side][name] for side in ("first", "second") for name in row[side]}
            _pair(read, f"compare {position}, json", row | sides)
        for row in csv.DictReader(io.StringIO(told["csv"])):
            known = {name: None if text == "" else number(text) for name, text in row.items()}
            _pair(read, f"compare {position}, csv", known)
        for row in _frame(table):
            _pair(read, f"compare {position}, frame", row)
        titles = [line for line in told["table"].splitlines() if " compared with " in line]
        said = [found for line in told["table"].splitlines() if (found := SENTENCE.search(line))]
        assert len(titles) == len(said) > 0
        for title, found in zip(titles, said, strict=True):
            texts = {"difference": found["difference"], "ci": found["ci"], "p": found["p"], "n": found["n"]}
            texts |= {"p holm": found["holm"], "family": found["family"]} if found["family"] else {}
            read.pair(f"compare {position}, terminal", _metric_of(title), (found["first"], found["second"]), texts)
        for _, title, row in Tables(table._repr_html_()).records():
            read.pair(
                f"compare {position}, notebook", _metric_of(title), (row["First"], row["Second"]), _shown_pair(row)
            )
    _analysed(read, store)


def _shown_pair(row: Mapping[str, str], what: str = HEADS["difference"]) -> dict[str, str]:
    heads = {"ci": HEADS["ci"], "p": HEADS["p"], "p holm": HEADS["p_holm"], "n": HEADS["n"]}
    return {"difference": row[what], **{name: row[head] for name, head in heads.items()}}


def _analysed(read: Figures, store: Path) -> None:
    told = shell("analyze", "toy", "--store", store, "--draws", str(DRAWS), "--baseline", "none")
    found = proctor.analyze(store, "toy", draws=DRAWS, baselines="none")
    for row in found["pairs"].to_dict("records"):
        sides = (f"{row['first']} / video", f"{row['second']} / video")
        _pair_of(read, "analyze, frame", ACCURACY, sides, row)
    for position, rows in (
        ("analyze, terminal", [row for title, row in printed(told.stdout) if title.startswith("Paired differences")]),
        ("analyze, notebook", [row for *_, row in Tables(found._repr_html_()).records() if HEADS["p_holm"] in row]),
    ):
        for row in rows:
            read.pair(position, "accuracy", (f"{row['First']} / video", f"{row['Second']} / video"), _shown_pair(row))


def _page(read: Figures, store: Path) -> None:
    """The page: its tables of scores, ranks and differences."""
    out = store.parent / "report.html"
    write_report(Store(store, create=False), "toy", out, options=Options(draws=DRAWS, seed=SEED))
    for _, caption, row in Tables(out.read_text("utf-8")).records():
        metric = _metric_of(caption)
        condition = row.get("Condition") or next((name for name in CONDITIONS if f", {name}" in caption), "")
        if HEADS["rank_ci"] in row and metric and METRICS[metric].label in row:
            where = (metric, row["System"].removesuffix(" baseline"), condition)
            _shown_rank(read, "page", where, row, METRICS[metric].label)
        for head in row:
            if head.startswith("Minus ") and "System" in row:
                sides = (f"{row['System']} / {row['Condition']}", f"{row['System']} / {head.removeprefix('Minus ')}")
                read.pair("page", _metric_of_pair(row[head]), sides, _shown_pair(row, head))


def _metric_of_pair(text: str) -> str:
    return "accuracy" if text.endswith(" pts") else "helpful"


def test_no_figure_has_two_texts(figures: Figures) -> None:
    differing = figures.differing()
    assert differing == {}, "\n".join(f"{key}: {found}" for key, found in list(differing.items())[:10])


def test_every_output_was_crawled(figures: Figures) -> None:
    """An output whose figures no other has was not read, or shows other things than it did."""
    compared = [f"compare {what}" for what in ("conditions", "systems", "all systems")]
    forms = ("terminal", "json", "csv", "frame", "notebook")
    positions = [f"{what}, {form}" for what in ("results", "rank", *compared) for form in forms]
    positions += ["analyze, terminal", "analyze, frame", "analyze, notebook"]
    assert [position for position in positions if not figures.shared_by(position)] == []
    kinds = {key[0] for key, found in figures.read.items() if len(found) >= 4}
    assert {"score", "ci", "n", "groups", "rank", "rank ci", "p of a pair", "p holm of a pair"} <= kinds


def test_the_page_has_every_score_and_interval(store: Path, figures: Figures) -> None:
    """Whatever its layout is: as texts."""
    page = re.sub(r"<[^>]*>", " ", (store.parent / "report.html").read_text("utf-8")).replace("\u00a0", " ")
    wanted = {
        text
        for (kind, *_), found in figures.read.items()
        if kind in {"score", "ci", "difference of a pair"}
        for position, texts in found.items()
        if position in {"results, json", "compare conditions, json"}
        for text in texts
        if text != "–"
    }
    turned_too = {text for text in wanted if text not in page and turned(text) not in page}
    assert {text for text in turned_too if not text.endswith("pts")} == set()


CELLS = (
    r"–",
    r"[+−]?\d{1,3}(?:\u202f\d{3})*",  # counts, ranks
    r"−?\d+\.\d %",
    r"[+−]?\d+\.\d pts",
    r"−?\d+\.\d+ to −?\d+\.\d+",
    r"< 0\.001|0\.(?:\d{2}|0\d{2}|00\d{2})|1\.00",  # p: two digits that count
    r"[+−]?\d+\.\d{2,3}",  # other scores, coefficients
    r"\d+ to \d+|\d+ \(\d+(?: to \d+)?\)|\d+ \(\d+\.\d %\)|\d+ \(−?\d+(?:\.\d{3})?\)",  # ranks with an interval or a score
    r"\d+–\d+–\d+",  # won, lost, tied
)


def test_a_cell_with_a_number_has_one_of_the_few_forms(store: Path, figures: Figures) -> None:
    """No `0.6627`, `1.192e-07` or `86%` in any table of results."""
    del figures  # the page is there
    form = re.compile("|".join(f"(?:{one})" for one in CELLS))
    sections = {"leaderboard", "facets", "analysis", "conditions", "gains", "ranking"}
    odd = set()
    for section, caption, row in Tables((store.parent / "report.html").read_text("utf-8")).records():
        if section in sections:
            odd |= {(caption[:40], head, text) for head, text in row.items() if _odd(form, text)}
    for table in (proctor.results(store, "toy"), proctor.analyze(store, "toy", baselines="none")):
        for _, caption, row in Tables(table._repr_html_()).records():
            odd |= {(caption[:40], head, text) for head, text in row.items() if _odd(form, text)}
    assert odd == set()


LENGTHS = {"0-5 s", "5-10 s", "10-20 s"}


def _odd(form: re.Pattern[str], text: str) -> bool:
    """Whether a cell is a number in a form of its own; names and sentences have letters."""
    if text in LENGTHS:  # values of a facet
        return False
    plain = re.sub(r"\b(?:to|pts|items?|groups?|s|failed)\b", "", text)
    return bool(re.search(r"\d", text)) and not re.search(r"[a-df-zA-Z]", plain) and not form.fullmatch(text)


@pytest.mark.parametrize(
    ("text", "odd"),
    [("0.6627", True), ("1.192e-07", True), ("86%", True), ("86 %", True), ("66.3 %", False), ("−8.1 to 54.6", False)],
)
def test_odd_forms_are_seen(text: str, odd: bool) -> None:
    assert _odd(re.compile("|".join(f"(?:{one})" for one in CELLS)), text) is odd
