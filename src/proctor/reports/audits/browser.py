"""The page's data for browsing: every question with its answers, their ratings beside the scores."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.audit import Key
from proctor.audit.length import lengths
from proctor.core import InputError
from proctor.media import MediaSettings
from proctor.media.names import locate
from proctor.media.pictures import encode, read_image
from proctor.reports.audits.source import AuditSource, Question
from proctor.reports.words import clean, plain_name

__all__ = ["AuditLimits", "AuditShown", "audit_data"]

_PICTURE = MediaSettings(max_side=320, quality=70)


@dataclass(frozen=True)
class AuditLimits:
    """How much goes into the page: `items` at most, `text` characters of each text, `characters` of all items
    together, `picture` bytes of each picture and `pictures` of all. What is beyond is left out, and said."""

    items: int = 2000
    text: int = 4000
    characters: int = 24 * 1024 * 1024
    picture: int = 48 * 1024
    pictures: int = 16 * 1024 * 1024


@dataclass
class AuditShown:
    """What the browser holds, and what it had to leave out."""

    items: int = 0
    items_left_out: int = 0
    answers: int = 0
    texts_cut: int = 0
    pictures: int = 0
    pictures_left_out: int = 0
    pixels: int = 0
    unknown_questions: int = 0

    def left_out(self, limits: AuditLimits) -> list[str]:
        """One sentence for each limit that was reached."""
        said = []
        if self.items_left_out:
            said.append(
                f"{self.items_left_out} of {self.items + self.items_left_out} questions are left out of the browser, "
                "those with the least disagreement; the numbers above count them."
            )
        if self.texts_cut:
            said.append(
                f"{self.texts_cut} texts are cut after {limits.text} characters; each says so where it stands."
            )
        if self.pictures_left_out:
            said.append(
                f"{self.pictures_left_out} pictures are left out: too large together, or they can't be read."
            )
        if self.unknown_questions:
            said.append(
                f"{self.unknown_questions} questions have no text at hand: their answers stand alone."
            )
        return said


@dataclass
class _Maker:
    source: AuditSource
    limits: AuditLimits
    shown: AuditShown = field(default_factory=AuditShown)

    def text(self, text: str) -> str | list[Any]:
        """The text, or where it is too long its beginning with the number of characters cut."""
        text = clean(text)
        if len(text) <= self.limits.text:
            return text
        self.shown.texts_cut += 1
        return [text[: self.limits.text], len(text) - self.limits.text]

    def question(self, question: Question | None) -> dict[str, Any]:
        if question is None:
            self.shown.unknown_questions += 1
            return {}
        found: dict[str, Any] = {"query": self.text(question.text)}
        if question.references:
            found["references"] = [
                [self.text(one.text), _brief(one.frequency), _brief(one.completeness)]
                for one in question.references
            ]
        if question.images:
            found["images"] = [self._picture(name) for name in question.images]
        return found

    def _picture(self, name: str) -> list[str]:
        """The picture's name, with the picture itself where it is at hand."""
        root = self.source.image_root
        if root is None:
            return [clean(name)]
        jpeg = _jpeg(root, name)
        fits = (
            jpeg is not None
            and len(jpeg) <= self.limits.picture
            and self.shown.pixels + len(jpeg) <= self.limits.pictures
        )
        if jpeg is None or not fits:
            self.shown.pictures_left_out += 1
            return [clean(name)]
        self.shown.pictures += 1
        self.shown.pixels += len(jpeg)
        return [clean(name), base64.b64encode(jpeg).decode("ascii")]


def _jpeg(root: Path, name: str) -> bytes | None:
    try:
        return encode(read_image(locate(root, name)), None, _PICTURE)
    except InputError:
        return None


def _brief(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def audit_data(source: AuditSource, limits: AuditLimits) -> tuple[dict[str, Any], AuditShown]:
    """Everything that the browser shows, as plain JSON data, and what it had to leave out; the questions with
    the most disagreement come first, and stay where not all fit."""
    maker = _Maker(source, limits)
    answers = _answers(maker)
    first = {one.item: one for one in reversed(source.table.ratings)}
    apart = {item: _apart(given) for item, given in answers.items()}
    ordered = sorted(answers, key=lambda item: -apart[item])
    items: list[dict[str, Any]] = []
    spent = 0
    for item in ordered[: limits.items]:
        rating = first[item]
        one = {
            "id": clean(item),
            "group": clean(rating.cluster),
            "dataset": clean(rating.dataset),
            "language": clean(rating.language),
            **maker.question(source.questions.get(item)),
            "answers": answers[item],
        }
        spent += len(json.dumps(one, ensure_ascii=False))
        if spent > limits.characters:
            break
        items.append(one)
        maker.shown.answers += len(answers[item])
    maker.shown.items = len(items)
    maker.shown.items_left_out = len(answers) - len(items)
    if not source.questions:
        maker.shown.unknown_questions = 0
    dimensions = list(dict.fromkeys(dimension for _, dimension in source.table.dimensions))
    data = {
        "metrics": [clean(one.name) for one in source.found.metrics],
        "dimensions": [plain_name(one) for one in dimensions],
        "raters": source.raters,
        "items": items,
    }
    return data, maker.shown


def _answers(maker: _Maker) -> dict[str, list[dict[str, Any]]]:
    """The answers of each item in the order of the ratings, each with its marks by dimension."""
    source = maker.source
    known = lengths(source.table)
    number = {
        name: place
        for place, name in enumerate(dict.fromkeys(dimension for _, dimension in source.table.dimensions))
    }
    given: dict[Key, list[list[Any]]] = {}
    for one in source.table.ratings:
        given.setdefault(one.key, []).append([clean(one.rater), _brief(one.value)])
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in source.table.ratings:
        key = one.item, one.system
        if key not in found:
            found[key] = {
                "system": clean(one.system),
                "text": maker.text(one.candidate),
                "length": known[key],
                "marks": {},
            }
        found[key]["marks"][number[one.dimension]] = [
            given[one.key],
            [_brief(metric.scores.get(one.key)) for metric in source.found.metrics],
            [
                None if (gap := source.found.gaps[metric.name].get(one.key)) is None else round(gap, 4)
                for metric in source.found.metrics
            ],
        ]
    by_item: dict[str, list[dict[str, Any]]] = {}
    for (item, _), answer in found.items():
        answer["marks"] = [[place, *marks] for place, marks in sorted(answer["marks"].items())]
        by_item.setdefault(item, []).append(answer)
    return by_item


def _apart(answers: Sequence[dict[str, Any]]) -> float:
    """The disagreement of the answer with the most: the mean of its gaps, whatever their sign."""
    means = []
    for answer in answers:
        gaps = [abs(gap) for *_, row in answer["marks"] for gap in row if gap is not None]
        if gaps:
            means.append(sum(gaps) / len(gaps))
    return max(means, default=-1.0)
