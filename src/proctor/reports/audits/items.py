"""Questions with their rated answers: what raters and metrics gave, those with the most disagreement first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.audits import Key, lengths
from proctor.core import InputError, clean, plain_name
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.reports.audits.source import AuditSource, Question
from proctor.reports.browser import Content, Limits, Shown
from proctor.reports.tables.agreement import spoken_language

RATED = Limits(picture=48 * 1024, pictures=16 * 1024 * 1024, characters=24 * 1024 * 1024)
"""How much goes into the page where nothing else is asked for."""

_PICTURE = MediaSettings(max_side=320, quality=70)


def rated_data(source: AuditSource, limits: Limits = RATED) -> tuple[dict[str, Any], Shown]:
    """Everything that the browser shows, and what it had to leave out; the questions with
    the most disagreement come first, and stay where not all fit."""
    maker = _Maker(source, Content(limits))
    shown = maker.content.shown
    answers = maker.answers()
    first = {one.item: one for one in reversed(source.table.ratings)}
    apart = {item: _apart(given) for item, given in answers.items()}
    items: list[dict[str, Any]] = []
    spent = 0
    for item in sorted(answers, key=lambda item: -apart[item])[: limits.items]:
        rating = first[item]
        facets = {"language": rating.language and spoken_language(rating.language), "dataset": rating.dataset}
        one = {
            "id": clean(item),
            "group": clean(rating.cluster),
            "facets": {name: [clean(value)] for name, value in facets.items() if value},
            **maker.question(source.questions.get(item)),
            "answers": answers[item],
        }
        spent += len(json.dumps(one, ensure_ascii=False))
        if spent > limits.characters:
            break
        items.append(one)
        shown.answers += len(answers[item])
    shown.items = len(items)
    shown.items_left_out = len(answers) - len(items)
    shown.order = ", those with the least disagreement"
    if not source.questions:
        shown.unknown_questions = 0
    dimensions = list(dict.fromkeys(dimension for _, dimension in source.table.dimensions))
    data = {
        "runs": [{"system": name, "condition": "", "baseline": False} for name in maker.systems],
        "facets": [facet for name in ("language", "dataset") if len((facet := _facet(name, items))[2]) > 1],
        "statuses": [],
        "votes": [],
        "ratings": {
            "raters": clean(source.raters),
            "metrics": [clean(one.name) for one in source.found.metrics],
            "dimensions": [plain_name(one) for one in dimensions],
        },
        "items": items,
    }
    return data, shown


def _facet(name: str, items: Sequence[dict[str, Any]]) -> list[Any]:
    return [name, name, sorted({value for item in items for value in item["facets"].get(name, ())})]


def _brief(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _note(**beside: float | None) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in beside.items() if value is not None)


@dataclass
class _Maker:
    source: AuditSource
    content: Content
    systems: dict[str, int] = field(default_factory=dict)

    def question(self, question: Question | None) -> dict[str, Any]:
        if question is None:
            self.content.shown.unknown_questions += 1
            return {}
        found: dict[str, Any] = {"question": self.content.text(question.text)}
        if question.references:
            found["references"] = [
                [self.content.text(one.text), _note(frequency=one.frequency, completeness=one.completeness)]
                for one in question.references
            ]
        if question.images:
            found["pictures"] = [self._picture(name) for name in question.images]
        return found

    def _picture(self, name: str) -> list[str]:
        """The picture's name, with the picture itself where it is at hand."""
        root = self.source.image_root
        return [clean(name)] if root is None else self.content.picture(name, _jpeg(root, name))

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """The answers of each item in the order of the ratings, each with its ratings and scores by dimension."""
        source = self.source
        known = lengths(source.table)
        names = dict.fromkeys(dimension for _, dimension in source.table.dimensions)
        number = {name: place for place, name in enumerate(names)}
        given: dict[Key, list[list[Any]]] = {}
        for one in source.table.ratings:
            given.setdefault(one.key, []).append([clean(one.rater), _brief(one.value)])
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for one in source.table.ratings:
            key = one.item, one.system
            if key not in found:
                found[key] = {
                    "run": self.systems.setdefault(clean(one.system), len(self.systems)),
                    "text": self.content.text(one.candidate),
                    "length": known[key],
                    "rated": {},
                }
            found[key]["rated"][number[one.dimension]] = [given[one.key], *self._scores(one.key)]
        by_item: dict[str, list[dict[str, Any]]] = {}
        for (item, _), answer in found.items():
            answer["rated"] = [[place, *marks] for place, marks in sorted(answer["rated"].items())]
            by_item.setdefault(item, []).append(answer)
        return by_item

    def _scores(self, key: Key) -> tuple[list[float | None], list[float | None]]:
        """Each metric's score, and its gap to the ratings."""
        metrics = self.source.found.metrics
        gaps = [self.source.found.discrepancies[metric.name].get(key) for metric in metrics]
        return (
            [_brief(metric.scores.get(key)) for metric in metrics],
            [None if gap is None else round(gap, 4) for gap in gaps],
        )


def _jpeg(root: Path, name: str) -> bytes | None:
    try:
        return encode(read_image(locate(root, name)), None, _PICTURE)
    except InputError:
        return None


def _apart(answers: Sequence[dict[str, Any]]) -> float:
    """The disagreement of the answer with the most: the mean of its gaps, whatever their sign."""
    means = []
    for answer in answers:
        gaps = [abs(gap) for *_, row in answer["rated"] for gap in row if gap is not None]
        if gaps:
            means.append(sum(gaps) / len(gaps))
    return max(means, default=-1.0)
