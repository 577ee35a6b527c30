"""Plain words: no phrase of the list stands in code, help, messages or documentation."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT
from tests.support.prose import pages, text_of

BANNED = {
    r"\bby lot\b": "at random, chance",
    r"told[ _]the[ _]key": "oracle baseline",
    r"\bmachinery\b|Machinery": "infrastructure",
    r"\bheld against\b": "compared with",
    r"\bin earnest\b": "name what is meant",
    r"as (?:a|an|the) (?!benchmark)\w+ has it": "as in the challenge",
    r"\banew\b": "again",
    r"\b[Ww]hoever\b": "name who",
    r"\bso many\b(?!\))": "n, this many",
    r"\b[Ss]urely\b": "significantly, certainly",
    r"\bfor ever\b": "indefinitely, permanently",
    r"\b(there|where|here)(of|in|upon)\b(?<!herein)": "of it, in it",
    r"\b[Dd]oes it look\?": "Is the video used?",
    r"\bsystems? of the floor\b": "baselines",
    r"\bduels?\b": "pairwise wins",
    r"\bmend(?:s|ed|ing)?\b": "corrected",
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
    r"\b(?:this|these) very\b(?! picture)": "this, these",
    r"\bnobody knows (?:what|when|which|whether)\b": "unknown",
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


def test_no_file_has_a_conflict_left_in_it() -> None:
    left = re.compile(r"^(<{7}|>{7}|={7})( |$)", re.MULTILINE)
    assert [file.relative_to(ROOT).as_posix() for file in pages() if left.search(text_of(file))] == []
