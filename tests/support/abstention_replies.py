"""The labelled abstentions of the tests of `core`: what each reply is, and how it is read."""

from __future__ import annotations

import json

from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    Format,
    FreeTextFormat,
    PercentageFormat,
    ShortTextFormat,
    TimestampsFormat,
    abstains,
    declines,
)
from tests.support.paths import ROOT

FOLDER = ROOT / "packages" / "proctor" / "tests" / "core" / "abstentions"
OPTIONS = ("Sliding the probe", "Rotating the probe", "A sweep through the liver", "Increasing the depth")
FORMS: dict[str, Format] = {
    "choice": ChoiceFormat(), "binary": BinaryFormat(), "count": CountFormat(), "free_text": FreeTextFormat(),
    "short_text": ShortTextFormat(), "classes": ClassesFormat(classes=("Clip", "Sponge")), "timestamps": TimestampsFormat(),
    "percentage": PercentageFormat(),
}  # fmt: skip


def rows(name: str) -> list[dict[str, str]]:
    """The replies of a file, each with what it `says`: "abstains", "declines" or "answer"."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def reading(row: dict[str, str]) -> str:
    """What is read in a reply, in the same words."""
    form, options = FORMS[row["format"]], OPTIONS if row["format"] == "choice" else ()
    if abstains(row["text"], form, options):
        return "abstains"
    return "declines" if declines(row["text"], form, options) else "answer"
