"""The analysis in the report and as files: every picture, its numbers, with few and with many systems."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from dataclasses import replace
from html import unescape
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from proctor.core import InputError
from proctor.reports import write_pictures, write_report
from proctor.reports.analysis import _pairs, performance_figures, podium_figure
from proctor.reports.blocks import Figure, recorded_figure
from proctor.reports.figures import (
    SHARES,
    Box,
    ChartSeries,
    Dot,
    Panel,
    Stack,
    Verdicts,
    draw_list,
    draw_podium,
    draw_rank_lines,
    draw_rows,
    draw_verdicts,
    plain_axis,
    ratio_axis,
)
from proctor.results import Analysis, Contest, Options, analyse
from proctor.runs import Store
from proctor.stats import Resampling
from tests.support.chromium import open_page
from tests.support.many_systems import BASE, many_systems

TITLES = (
    "Pairwise comparisons",
    "Significance in each bucket",
    "Stability of the ranks",
    "Ranks under other rules",
    "Agreement with rankings of samples",
    "Accuracy by capabilities",
    "Labels alone and together",
    "Accuracy by context",
    "Distribution: “out” minus “in”",
    "Variation between groups",
    "Adjusted odds ratios for a correct answer",
    "Paired differences",
    "Podium",
    "Ensembles",
    "Failures by answer format",
)


@pytest.fixture(scope="module", params=[3, 10])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return many_systems(tmp_path_factory.mktemp("many"), request.param, questions=240, videos=12)


@pytest.fixture(scope="module")
def page(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    found = write_report(store, "focus", out, options=Options(draws=100), baselines=BASE[:1], max_items=5)
    assert {"ranking", "analysis"} <= set(found.sections)
    assert found.bytes < 3_000_000
    return out


def test_every_picture_is_there_with_its_numbers(page: Path) -> None:
    text = unescape(page.read_text(encoding="utf-8"))
    assert [title for title in TITLES if title not in text] == []
    figures = re.findall(r"<figure>.*?</figure>\s*<details>", text, re.DOTALL)
    assert len(figures) > 15
    analysis = text[text.index('<section id="analysis"') :]
    analysis = analysis[: analysis.index("</section>")]
    assert analysis.count("<figure>") == analysis.count("<summary>The numbers as") >= 10
    assert 'badge">baseline' in text


def test_what_is_not_adjusted_for_many_tests_says_so(page: Path) -> None:
    text = unescape(page.read_text(encoding="utf-8"))
    captions = re.findall(r"<figcaption><bdi>(.*?)</bdi>", text, re.DOTALL)
    for start, said in (
        ("Adjusted odds ratios for a correct answer", "p is not adjusted for the number of terms"),
        ("Accuracy of the first less", "not adjusted for many pairs; p (Holm) is: for the "),
        ("Accuracy, and its paired difference", "Who is best was chosen on the same questions"),
    ):
        (found,) = [one for one in captions if one.startswith(start)]
        assert said in found


def test_hostile_names_stay_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<b>a very" not in text.partition('<script id="data"')[0]


def test_drawings_fit_without_scripts_on_a_screen_and_a_phone(chromium: str, page: Path) -> None:
    """No text of a drawing leaves it, and the page does not scroll sideways."""

    async def work() -> list[tuple[int, list[str]]]:
        found = []
        async with open_page(chromium) as browser:
            for width in (1280, 390):
                await browser.resize(width, 900)
                await browser.open(page.as_uri() + f"?{width}")
                wide = await browser.evaluate("document.documentElement.scrollWidth - innerWidth")
                cut = await browser.evaluate(
                    "[...document.querySelectorAll('#ranking svg.drawing, #analysis svg.drawing')].flatMap(s => {"
                    " const b = s.getBoundingClientRect();"
                    " return [...s.querySelectorAll('text')].filter(t => { const r = t.getBoundingClientRect();"
                    "  return r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom "
                    "+ 1;"
                    " }).map(t => s.querySelector('title').textContent + ': ' + t.textContent) })"
                )
                found.append((wide, cut))
        return found

    found = asyncio.run(work())
    assert [cut for _, cut in found] == [[], []]
    assert all(wide <= 0 for wide, _ in found)


@pytest.fixture(scope="module")
def analysis(store: Store) -> Analysis:
    return analyse(store, "focus", Contest(baselines=BASE[:1]), stability=20, plan=Resampling(draws=100))


def test_pictures_as_files_are_whole_drawings(analysis: Analysis, tmp_path: Path) -> None:
    written = write_pictures(analysis, tmp_path)
    assert len(written) == len({file.name for file in written}) >= 20
    for file in written:
        root = ElementTree.parse(file).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find("{http://www.w3.org/2000/svg}rect") is not None
    lined = write_pictures(analysis, tmp_path / "lined", lambda _facet, _value: 0.25)
    name = "capabilities.svg"
    plain_text, lined_text = (folder / name for folder in (tmp_path, lined[0].parent))
    assert lined_text.read_text().count("stroke-dasharray") > plain_text.read_text().count("stroke-dasharray")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a writable path"):
        write_pictures(analysis, tmp_path / "file")


def test_few_numbers_are_a_table_and_many_are_csv() -> None:
    rows = [{"system": "=1+1", "value": 0.123456789, "n": k} for k in range(41)]
    few = recorded_figure("a", "A", "<svg/>", "c", rows[:40])
    assert few.numbers is not None
    assert few.csv == ""
    many = recorded_figure("a", "A", "<svg/>", "c", rows)
    assert many.numbers is None
    first = next(csv.DictReader(io.StringIO(many.csv)))
    assert first == {"system": "'=1+1", "value": "0.12346", "n": "0"}
    assert many.csv.count("\n") == 42
    assert "\r" not in many.csv


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter("text")]


def test_a_filled_dot_is_an_interval_without_the_score_and_long_ones_end_in_arrows() -> None:
    axis = ratio_axis(0.5, 2.0)
    assert axis.labels == ("0.1", "0.2", "0.5", "1", "2", "5", "10")
    dots = [Dot(0.3, 0.1, 0.5), Dot(0.1, -0.1, 0.3), Dot(0.5, -2.0, 3.0), Dot()]
    rows = list(zip("abcd", dots, ["1", "2", "3", "–"], strict=True))
    drawn = draw_list("k", "t", rows, axis, head="odds", line=(0.0, "none"))
    assert drawn.count("f-paper") == 2  # hollow: the second and the third
    assert drawn.count(" z") >= 2  # two arrows
    assert {"a", "b", "c", "d", "odds", "none"} <= set(texts(drawn))


def test_lines_that_share_a_place_stand_apart_and_keep_its_number() -> None:
    shown = texts(draw_rank_lines("k", "t", ["a", "b", "c"], ["one", "two"], [[1, 3], [1, 1], [3, 1]]))
    assert sorted(text for text in shown if text.isdigit()) == ["1", "1", "1", "1", "3", "3"]
    assert shown.count("a") == 2


def test_other_drawings_say_their_numbers_to_those_who_do_not_see_them() -> None:
    verdicts = Verdicts("all", [[None, 1], [-1, None]], [["", "3–0–1"], ["0–3–1", ""]])
    assert "a: better than b" in draw_verdicts("k", "t", ["a", "b"], verdicts)
    podium = draw_podium("k", "t", ["a", "b"], [[1.0, 0.5], [0.2, 0.2]], [[1, 2], [1, 1]], plain_axis(0, 1))
    assert "a: first on 2, second on 0" in podium
    box = draw_list("k", "t", [("a", Box(0, 0.1, 0.2, 0.3, 0.4), "median 0.2")], plain_axis(0, 1), head="h")
    assert "a: median 0.2, quartiles 0.1 and 0.3" in box
    series = [ChartSeries("right", 0, "R"), ChartSeries("wrong", 1, "W")]
    panel = Panel("count", [Stack([3, 1], shares=True), Stack([0, 0], shares=True)])
    assert "count, a: 3 right, 1 wrong" in draw_rows("k", "t", ["a", "b"], [panel], SHARES, series=series)


def test_plain_axes_do_not_round_their_labels_away() -> None:
    assert plain_axis(0.0, 1.0).labels == ("0", "0.25", "0.50", "0.75", "1.00")


def test_what_guessing_reaches_is_a_broken_line_wherever_accuracy_is_drawn(analysis: Analysis) -> None:
    asked: list[tuple[str, str]] = []

    def by_lot(facet: str, value: str) -> float:
        asked.append((facet, value))
        return 0.25

    def broken(pictures: list[Figure]) -> dict[str, int]:
        return {one.name: one.svg.count("stroke-dasharray") for one in pictures}

    without, found = broken(performance_figures(analysis)), broken(performance_figures(analysis, by_lot))
    more = {name for name in found if found[name] > without[name]}
    assert more == {"capabilities", "length", "videos", "videos-labels"} & found.keys()
    assert "capabilities" in more
    assert ("", "") in asked
    assert {facet for facet, _ in asked} >= {analysis.labels}


def numbers(figures: list[Figure], name: str) -> list[dict[str, Any]]:
    (figure,) = [one for one in figures if one.name == name]
    if figure.numbers is not None:
        return [
            row | dict(zip(("ci_low", "ci_high"), row.get("ci", ()), strict=False)) for row in figure.numbers.records
        ]
    cells = csv.DictReader(io.StringIO(figure.csv))
    return [{k: float(v) if re.fullmatch(r"-?[0-9.e-]+", v) else v for k, v in row.items()} for row in cells]


def test_in_a_pair_the_better_placed_stands_first_with_its_interval(analysis: Analysis) -> None:
    index = {name: number for number, name in enumerate(analysis.boards[0].names)}
    known = {(row["first"], row["second"]): row for row in analysis.tables["pairs"]}
    turned = 0
    for row in numbers(performance_figures(analysis), "pairs"):
        assert row["ci_low"] <= row["difference"] <= row["ci_high"]
        assert row["family"] == "baselines" or index[row["first"]] < index[row["second"]]
        if (row["first"], row["second"]) in known:
            continue
        turned += 1
        other = known[row["second"], row["first"]]
        assert (row["difference"], row["ci_low"], row["ci_high"]) == pytest.approx(
            (-other["difference"], -other["ci_high"], -other["ci_low"]), abs=1e-4
        )
        assert (row["only_first_right"], row["only_second_right"]) == (
            other["only_second_right"],
            other["only_first_right"],
        )
    assert turned or len(index) == 3


def test_one_pair_alone_is_not_adjusted_and_the_caption_does_not_say_for_what(analysis: Analysis) -> None:
    """It ended with "p (Holm) is: )"."""
    row = {**analysis.tables["pairs"][0], "family": "systems", "adjusted_for": ""}
    alone = replace(analysis, tables={**analysis.tables, "pairs": [row]})
    figure = _pairs(alone, [row["first"], row["second"]])
    assert figure is not None
    assert figure.caption.endswith("A filled dot: the 95 % CI excludes 0.")


def test_of_many_pairs_neighbours_and_the_first_against_the_nine_next_to_it_are_drawn(analysis: Analysis) -> None:
    """Twelve names: eleven pairs of neighbours, and the first against the third to the tenth."""
    names = [f"s{number:02d}" for number in range(12)]
    known = analysis.tables["pairs"][0] | {"family": "baselines"}
    rows = [known | {"first": one, "second": other} for one, other in combinations(names, 2)]
    many = replace(analysis, tables=analysis.tables | {"pairs": rows})
    figure = _pairs(many, names)
    assert figure is not None
    shown = {text for text in texts(figure.svg) if re.fullmatch(r"s\d\d − s\d\d", text)}
    near = {f"{one} − {other}" for one, other in pairwise(names)}
    assert shown == near | {f"s00 − {name}" for name in names[2:10]}
    assert "all 66 pairs stand in the numbers" in figure.caption


def test_the_podium_counts_the_groups_where_a_system_is_best(analysis: Analysis) -> None:
    names = [one.standing.name for one in analysis.boards[0].runs][:6]
    value = {(row["group"], row["system"]): row["value"] for row in analysis.tables["groups"]}
    groups = [group for group in dict.fromkeys(group for group, _ in value) if all((group, n) in value for n in names)]
    best = {group: max(value[group, name] for name in names) for group in groups}
    first = [sum(value[group, name] == best[group] for group in groups) for name in names]
    figure = podium_figure(analysis)
    assert figure is not None
    assert [int(count) for count in re.findall(r"first on (\d+)", figure.svg)] == first


def test_a_gap_is_the_accuracy_of_the_second_value_less_that_of_the_first(analysis: Analysis) -> None:
    of_value = {(row["system"], row["factor"], row["value_of"]): row["value"] for row in analysis.tables["factors"]}
    gaps = analysis.tables["gaps"]
    assert {(row["factor"], row["first"], row["second"]) for row in gaps} >= {("distribution", "in", "out")}
    for row in gaps:
        first, second = (of_value[row["system"], row["factor"], row[side]] for side in ("first", "second"))
        assert row["value"] == pytest.approx(second - first)
    assert any(abs(row["value"]) > 0.02 for row in gaps)
