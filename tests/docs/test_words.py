"""Plain words: no phrase of the list stands in code, help, messages or documentation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import PACKAGES, ROOT

BANNED = {
    r"\bby lot\b": "at random, chance",
    r"told[ _]the[ _]key": "oracle baseline",
    r"\bmachinery\b|Machinery": "infrastructure",
    r"\bheld against\b": "compared with",
    r"\bin earnest\b": "name what is meant",
    r"as the (challenge|task|toolkit|paper) has it": "as in the challenge",
    r"\banew\b": "again",
    r"\b[Ww]hoever\b": "name who",
    r"\bso many\b(?!\))": "n, this many",
    r"\b[Ss]urely\b": "significantly, certainly",
    r"\bfor ever\b": "indefinitely, permanently",
    r"\b(there|where|here)(of|in|upon)\b(?<!herein)": "of it, in it",
    r"\b[Dd]oes it look\?": "Is the video used?",
    r"\bsystems? of the floor\b": "baselines",
    r"\bduels?\b": "pairwise wins",
    r"\bmended\b": "corrected",
    r"\b[Gg]uessers?\b": "text-only baseline",
    r"\b[Pp]ortraits?\b": "metric profile",
    r"\bfavour\b(?! long)": "residual, bias",
    r"\bGathered\b|\bgathered\b": "collected, AnalysisData",
    r"\b([Gg]iveaway|[Ff]oregone|Dialect|looking_up|AskedOnce|VoteBook)\b": "leakage, constant answer, question "
    "templates, retrieval, CachedModel, "
    "JudgementCache",
    r"\b[Ss]hel(f|ves)\b": "frame set",
    r"\bsteers?\b(?! the judge)": "prompt injection",
    r"\bbelow the line\b": "fails the baseline criterion",
    r"\bscrambled\b": "hash",
    r"\bSubmissions together\b|\bSpread over the groups\b": "Ensembles, variation between groups",
    r"all else held fixed": "adjusted odds ratios",
    r"\bRight up to reversal\b": "correct or exactly reversed",
    r"contradict themselves": "inconsistent judge ratings",
    r"\bmembers apart\b": "disagreement between members",
    r"\bto be decided\b": "open findings",
    r"\blook's bits\b": "bits of the perceptual hash",
    r"\bthought about\b": "development",
    r"\bpaid twice\b": "no call is repeated",
    r"\b(?:can't|cannot) be\s+told\b(?!\s+(?:apart|from))": "undecided",
    r"\ball told\b": "in total",
    r"\btold (?:together|in (?:a|one) line|as much|the answers)\b": "reported, revealed, uses the reference answers",
    r"\b(?:both|each|neither) voted\b": "judged (a panel and annotators vote)",
    r"\bmarked twice\b|\(\*?not marked\b": "scored",
}
ALLOWED = {
    "CHANGELOG.md": 2,  # the former names
    "packages/proctor/src/proctor/judges/documents.py": 1,  # a shelf of textbooks
    "packages/proctor/src/proctor/audits/items/baselines.py": 2,  # the names of two recorded draws
    "packages/proctor/src/proctor/runs/store.py": 1,  # a setting in stores of the first edition
    "packages/proctor/src/proctor/core/formats/numbers.py": 1,  # words of replies that are read
    "packages/proctor/src/proctor/tasks/clinicalskillqa/methods/workflows/bmv.yaml": 1,  # a mask, in a prompt
}


PLACE = re.compile(r"\b[Pp]laces?\b")
PLACE_IN_A_PHRASE = re.compile(
    r"\bin (?:the |its |their )?place\b|\bt(?:ake|akes|aking|ook) (?:the )?place\b|\binto place\b", re.IGNORECASE
)
IN_SPACE = (
    "docs/files.md", "docs/reference/conditions.md", "docs/tasks/build-from-tracks.md", "docs/tasks/order-by-prompting.md",
    "docs/tasks/pose.md", "docs/tasks/review-in-the-browser.md", "docs/tasks/sight-test.md",
    "packages/proctor-build/src/proctor_build/annotators/", "packages/proctor-build/src/proctor_build/checks.py",
    "packages/proctor-build/src/proctor_build/cvat.py", "packages/proctor-build/src/proctor_build/focus/rules.py",
    "packages/proctor/src/proctor/media/evidence_conditions.py", "packages/proctor/src/proctor/media/mp4.py",
    "packages/proctor/src/proctor/media/occlusion.py", "packages/proctor/src/proctor/media/overlays.py",
    "packages/proctor/src/proctor/models/prefix_cache.py", "packages/proctor/src/proctor/results/reliance.py",
    "packages/proctor/src/proctor/sight/", "packages/proctor/src/proctor/systems/baselines.py",
    "packages/proctor/src/proctor/tasks/clinicalskillqa/", "packages/proctor/src/proctor/tasks/simulated/",
    "packages/proctor/src/proctor/tracks/",
)  # fmt: skip
"""Files, or folders, in which a place is one of space: in a picture, in a body, or on earth. `prefix_cache` places tokens."""
NAMED_PLACE = {
    "packages/proctor/src/proctor/core/formats/order_words.py": 2,  # words of replies that are read
    "packages/proctor/src/proctor/core/formats/orders.py": 2,
    "packages/proctor/src/proctor/media/objects.py": 1,  # a file in caches
    "packages/proctor-web/src/proctor_web/studies.py": 1,  # the name of a recorded draw
}


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


@pytest.mark.parametrize("pattern", BANNED)
def test_no_banned_word_is_left(pattern: str) -> None:
    hits = []
    for file in pages():
        name = file.relative_to(ROOT).as_posix()
        text = text_of(file)
        found = [text.count("\n", 0, hit.start()) + 1 for hit in re.finditer(pattern, text)]
        if len(found) > ALLOWED.get(name, 0):
            hits += [f"{name}:{line}" for line in found]
    assert not hits, f"better: {BANNED[pattern]}"


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def places_in(text: str) -> list[int]:
    """The lines that say "place" where another word says what is meant."""
    plain = PLACE_IN_A_PHRASE.sub(lambda hit: "·" * len(hit[0]), text)
    return [plain.count("\n", 0, hit.start()) + 1 for hit in PLACE.finditer(plain)]


def test_a_place_is_one_of_space() -> None:
    """Not a rank, a position in an order, a row, a slot of a form, or a location in a file."""
    hits = []
    for file in pages():
        name = file.relative_to(ROOT).as_posix()
        if name == "CHANGELOG.md" or name.startswith((*IN_SPACE, "bench/")):
            continue
        found = places_in(text_of(file))
        hits += [f"{name}:{line}" for line in found] if len(found) > NAMED_PLACE.get(name, 0) else []
    assert not hits, "better: rank, position, row, slot, location"


def test_a_place_is_seen_where_another_word_is_meant() -> None:
    said = "teams that share a place\nin place of it\nthe file and the place\nit takes place\nthe first three places"
    assert places_in(said) == [1, 3, 5]


@pytest.mark.parametrize("name", [*IN_SPACE, *NAMED_PLACE])
def test_no_allowance_for_places_is_left_over(name: str) -> None:
    files = [file for file in pages() if file.relative_to(ROOT).as_posix().startswith(name)]
    assert any(places_in(text_of(file)) for file in files)


def test_no_file_has_a_conflict_left_in_it() -> None:
    left = re.compile(r"^(<{7}|>{7}|={7})( |$)", re.MULTILINE)
    assert [file.relative_to(ROOT).as_posix() for file in pages() if left.search(text_of(file))] == []
