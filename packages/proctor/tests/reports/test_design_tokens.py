"""One file of design tokens for all pages: contrasts by computation, and no colour beside it."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product

import pytest

from proctor.reports.figures.canvas import COLOURS
from proctor.reports.figures.marks import DARK, DARK_GREYS, LIGHT, LIGHT_GREYS

ASSETS = files("proctor.reports") / "assets"
TOKENS = (ASSETS / "shared" / "tokens.css").read_text(encoding="utf-8")
STYLES = {
    "chart.css": ASSETS / "shared" / "chart.css",
    "report.css": ASSETS / "report.css",
    **{name: files("proctor_web") / "static" / name for name in ("proctor.css", "work.css", "player.css")},
    "challenge.css": files("proctor_challenge") / "pages" / "static" / "challenge.css",
}
TEXTS = ("ink", "faint", "link", "good", "bad")
SCORES = (*(f"s{number}" for number in range(8)), *(f"m{number}" for number in range(4)), "edge")


def tokens(scheme: str) -> dict[str, str]:
    """The tokens of a colour scheme."""
    light, _, dark = TOKENS.partition("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", light if scheme == "light" else dark))


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[row : row + 2], 16) / 255 for row in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)  # the well-known grey that just fails


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scores_and_texts_stand_out_from_the_page(scheme: str) -> None:
    known = tokens(scheme)
    grounds = [known["paper"], known["tint"]]
    faint = {name: contrast(known[name], ground) for name, ground in product(SCORES, grounds)}
    assert {name: ratio for name, ratio in faint.items() if ratio < 3} == {}
    texts = {name: contrast(known[name], ground) for name, ground in product(TEXTS, [*grounds, known["pick"]])}
    assert {name: ratio for name, ratio in texts.items() if ratio < 4.5} == {}
    assert contrast(known["on-link"], known["link"]) >= 4.5
    assert contrast(known["warn-ink"], known["warn"]) >= 4.5


def test_both_schemes_have_the_same_colours() -> None:
    assert [*tokens("light")] == [*tokens("dark")]
    assert set(SCORES) | set(TEXTS) <= tokens("light").keys()


def test_files_outside_a_page_have_the_light_colours() -> None:
    known = tokens("light")
    drawn = {name: colour for name, colour in COLOURS.items() if name != "dark"}
    assert drawn == {name: {"#fff": "#ffffff"}.get(known[name], known[name]) for name in drawn}
    for scheme, series, greys in (("light", LIGHT, LIGHT_GREYS), ("dark", DARK, DARK_GREYS)):
        scores = tokens(scheme)
        assert [scores[f"s{number}"] for number in range(len(series))] == [*series]
        assert [scores[f"m{number}"] for number in range(len(greys))] == [*greys]


@pytest.mark.parametrize("name", STYLES)
def test_no_style_sheet_has_a_colour_of_its_own(name: str) -> None:
    """But black and white, which frames of videos stand on, paper needs, and shadows are."""
    style = STYLES[name].read_text(encoding="utf-8")
    own = {colour for colour in re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{}]*\{)", style) if set(colour[1:]) - set("0f")}
    assert own <= {"#444", "#0008"}, name
    used, declared = set(re.findall(r"var\((--[\w-]+)", style)), set(re.findall(r"(--[\w-]+):", TOKENS + style))
    set_by_scripts = {"--frames", "--class", "--shape"}
    assert used - declared <= set_by_scripts
