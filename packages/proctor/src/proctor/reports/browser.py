"""The data of the item browser in a report (pictures, film strips, outcomes), from a store's answers or from rated
answers, within limits.

The data are JSON, which the page's script shows as text: `runs` (system, condition, whether it is a baseline), `facets`
(name, words, values), `statuses`, `items` with their `answers`, `judgements` (replies of judges), and, for rated answers,
`ratings` (the raters' name, metrics, dimensions). A shortened text is a list of its beginning and the number of missing
characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

from proctor import core
from proctor.audits import Key, lengths
from proctor.core.formats import ChoiceFormat, OrderingFormat, option_letters
from proctor.judges import UNRESOLVED
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.reports.content import Content, Limits, Shown, as_text
from proctor.reports.metric_agreement import spoken_language
from proctor.reports.packing import BrowserData, compact, pack
from proctor.reports.report_numbers import AuditSource, Question, Source

Thumbnails = Callable[[core.Item], list[tuple[str, bytes]]]
"""Returns small JPEGs of an item with their labels."""


_LINES = json.JSONEncoder(ensure_ascii=False, separators=(",\n ", ": "))


def _one_a_line(values: dict[str, Any]) -> str:
    """Like `json.dumps` with an indent of 1, but several times faster.

    >>> _one_a_line({"a": 1, "b": [2]}) == json.dumps({"a": 1, "b": [2]}, indent=1)
    True
    """
    if not values or not {list, dict}.isdisjoint(map(type, values.values())):
        return json.dumps(values, ensure_ascii=False, indent=1)
    return f"{{\n {_LINES.encode(values)[1:-1]}\n}}"


_STRIP = 24  # labels of one order
_LABEL = 40  # characters of one label


def browser_data(source: Source, limits: Limits, thumbnails: Thumbnails | None = None) -> tuple[BrowserData, Shown]:
    """The content of the browser, and what was left out."""
    maker = _StoredMaker(source, Content(limits), thumbnails)
    shown = maker.content.shown
    kept = source.items[: limits.items]
    columns = {name: source.table.facet(name) for name in source.facets}
    items = [
        maker.item(item, {name: list(map(core.clean, values[row])) for name, values in columns.items() if values[row]})
        for row, item in enumerate(kept)
    ]
    runs = source.ordered_runs
    made, texts = list[_MadeAnswers](), list[str]()
    enough = _enough(maker, items, limits.characters)
    for rows in (range(enough), range(enough, len(kept))):
        if rows and sum(map(len, texts)) <= limits.characters:  # else no further item is shown
            some = maker.answers(rows)
            made += some
            texts += map(_with_answers, items[rows.start : rows.stop], some)
    whole = _within(texts, limits.characters)
    judgements = source.judgements(maker.judgements)
    head = {
        "runs": [
            {
                "system": core.clean(run.system),
                "condition": core.clean(run.condition),
                "baseline": source.is_baseline(run.system),
                "mark": source.numbers[run.condition],
            }
            for run in runs
        ],
        "facets": [[name, core.plain_name(name), list(map(core.clean, source.values(name)))] for name in source.facets],
        "statuses": sorted({status for one in made for status in one.statuses}),
    }
    by_number = {
        number: maker.content.judgement(judgements[key]) if key in judgements else None
        for key, number in maker.judgements.items()
    }
    data = pack(head, texts[:whole], by_number, [one.judgements for one in made[:whole]], limit=limits.bytes)
    shown.items = data.kept
    shown.answers = sum(len(one.texts) for one in made[: data.kept])
    shown.items_left_out = len(source.items) - data.kept
    shown.order = " (proctor export writes all)"
    return data, shown


_MANY = 100_000
"""Answers above which the browser's size is estimated before all of them are read."""
_PROBED = 100
_MARGIN = 1.25


def _enough(maker: _StoredMaker, items: Sequence[dict[str, Any]], characters: int) -> int:
    """The number of items that fill the browser, with a margin; by the size of the first ones if there are many answers."""
    if len(items) * len(maker.source.ordered_runs) <= _MANY:
        return len(items)
    probe = replace(maker, content=Content(maker.content.limits), judgements={})
    probed = list(map(_with_answers, items[:_PROBED], probe.answers(range(min(_PROBED, len(items))))))
    return min(len(items), ceil(_MARGIN * characters * len(probed) / sum(map(len, probed))))


@dataclass
class _MadeAnswers:
    """The answers to one item as JSON, in the order of runs, their statuses, and the numbers of judgements behind them."""

    texts: list[str] = field(default_factory=list)
    statuses: set[str] = field(default_factory=set)
    judgements: set[int] = field(default_factory=set)


def _with_answers(item: dict[str, Any], made: _MadeAnswers) -> str:
    return f'{compact(item)[:-1]},"answers":[{",".join(made.texts)}]}}'


@dataclass
class _StoredMaker:
    source: Source
    content: Content
    thumbnails: Thumbnails | None
    judgements: dict[str, int] = field(default_factory=dict)

    def item(self, item: core.Item, facets: dict[str, list[str]]) -> dict[str, Any]:
        text = self.content.text
        data: dict[str, Any] = {
            "id": core.clean(item.id),
            "group": core.clean(item.group),
            "format": core.plain_name(item.answer.kind),
            "question": text(item.question),
            "facets": facets,
        }
        if item.options:
            data["options"] = [text(option) for option in item.options]
        if item.reference is not None:
            spoken = _references(item, item.reference)
            data["references"] = [[text(one), ""] for one in spoken]
            if item.reference.rationale:
                data["rationale"] = text(item.reference.rationale)
            if isinstance(item.answer, ChoiceFormat) and item.has_answer:
                data["keys"] = [as_text(one) for one in (item.reference.answer, *item.reference.accepted)]
        known = self.source.card.excerpts
        clips = [medium for medium in item.media if isinstance(medium, core.VideoClip | core.AudioClip)]
        if clips:
            data["clips"] = [_where(clip, known.get(clip.source)) for clip in clips]
        pictures = [
            picture
            for label, jpeg in (self.thumbnails(item) if self.thumbnails else ())
            if len(picture := self.content.picture(label, jpeg)) > 1
        ]
        if pictures:
            data["pictures"] = pictures
        if isinstance(item.answer, OrderingFormat):
            data["strip"] = _order(item.answer.labels)
            if item.reference is not None and item.has_answer:
                data["order"] = _order(item.reference.answer)
        return data

    def answers(self, rows: range) -> list[_MadeAnswers]:
        """The answers of all runs to the items at these positions."""
        found = [_MadeAnswers() for _ in rows]
        for number, run in enumerate(self.source.ordered_runs):
            scores, given = self.source.scores(run, rows), self.source.answers(run, rows)
            for row in sorted(given):
                own = found[row - rows.start]
                data = self.answer(number, self.source.items[row], given[row], scores.get(row, []))
                own.texts.append(compact(data))
                own.statuses.add(data["status"])
                own.judgements |= {one["judgement"] for one in data.get("scores", ()) if "judgement" in one}
        return found

    def answer(self, run: int, item: core.Item, answer: core.Answer, scores: list[core.Score]) -> dict[str, Any]:
        text = self.content.text
        data: dict[str, Any] = {"run": run, "status": answer.status.value, "text": text(answer.text)}
        read = "" if answer.parsed is None else _spoken(item, answer.parsed)
        if read and read != answer.text:
            data["read"] = text(read)
        for name, note in (("problem", answer.problem), ("reason", answer.reason)):
            if note:
                data[name] = text(note)
        if answer.problem and answer.extra.get("cut_off") is True:
            data["cut_off"] = True
        if isinstance(item.answer, OrderingFormat) and isinstance(answer.parsed, list):
            data["order"] = _order(answer.parsed)
        data |= self._beside(item, answer)
        if answer.timing is not None:
            data["seconds"] = round(answer.timing.model_s, 3)
        if answer.usage.requests:
            data["tokens"] = [answer.usage.input_tokens, answer.usage.output_tokens]
        if scores:
            data["scores"] = [self._score(score) for score in sorted(scores, key=self._metric_position)]
        data["outcome"] = _outcome(self.source, item, answer, scores)
        return data

    def _beside(self, item: core.Item, answer: core.Answer) -> dict[str, Any]:
        """What was recorded with the answer; the most important fields have their own keys."""
        data: dict[str, Any] = {}
        extra = dict(answer.extra)
        if isinstance(extra.get("rationale"), str):
            data["why"] = self.content.text(str(extra.pop("rationale")))
        order = extra.pop("options_shown", None)
        if isinstance(order, list) and order != list(item.options):
            data["shown"] = [self.content.text(as_text(option)) for option in order]
            if own := _own_letter(item, answer, order):
                data["other"] = f"saw the options in another order: its {own} is {answer.parsed} here"
        if extra:
            data["more"] = self.content.text(_one_a_line(extra))
        return data

    def _metric_position(self, score: core.Score) -> int:
        """The position of a metric: those that lead first."""
        return self.positions.get(score.metric, len(self.positions))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The metrics in the order in which a reader wants them."""
        keys = [*self.source.leading, *self.source.keys]
        return {name: position for position, name in enumerate(dict.fromkeys(key.metric for key in keys))}

    def _score(self, score: core.Score) -> dict[str, Any]:
        metric = self.source.metric(score.metric)
        shown = f"{score.value:.4g}" if not metric.percent else _yes_or_share(metric, score.value)
        data: dict[str, Any] = {"metric": core.clean(metric.label), "value": shown, "scorer": core.clean(score.scorer)}
        if score.label and metric.percent:
            data["value"] = core.clean(score.label)
        elif score.label and score.label != shown:
            data["label"] = core.clean(score.label)
        if score.judgement_key:
            data["judgement"] = self.judgements.setdefault(score.judgement_key, len(self.judgements))
        return data


def _within(items: Sequence[str], limit: int) -> int:
    """The number of items that have at most this number of characters together."""
    spent = 0
    for row, item in enumerate(items):
        spent += len(item)
        if spent > limit:
            return row
    return len(items)


def _order(labels: Any) -> list[str]:
    """Labels for a strip of frames, limited in length and number."""
    values = labels if isinstance(labels, list | tuple) else []
    return [core.clean(as_text(label))[:_LABEL] for label in values[:_STRIP]]


def _own_letter(item: core.Item, answer: core.Answer, order: list[Any]) -> str:
    """The letter of the chosen option in the order that the system saw; "" if unknown."""
    if not isinstance(item.answer, ChoiceFormat) or not isinstance(answer.parsed, str):
        return ""
    letters = option_letters(len(item.options))
    if answer.parsed not in letters or sorted(map(str, order)) != sorted(item.options):
        return ""
    return letters[order.index(item.options[letters.index(answer.parsed)])]


def _where(clip: core.VideoClip | core.AudioClip, excerpt: core.Excerpt | None) -> dict[str, str]:
    """The clip's start and end in words, and the URL of its source at the start."""
    sounding = not isinstance(clip, core.AudioClip) and clip.audio
    kind, sound = "recording" if isinstance(clip, core.AudioClip) else "video", " with sound" if sounding else ""
    stretch = f"{clip.start:.1f} s to {'the end' if clip.end is None else f'{clip.end:.1f} s'} of"
    whole = clip.end is None and not clip.start
    clip_data = {"text": f"{'whole' if whole else stretch} {kind} {core.clean(clip.source)}{sound}"}
    if excerpt is not None and excerpt.url.startswith("https://"):
        begins = max(0, int(excerpt.start + clip.start))
        clip_data["url"] = core.clean(f"{excerpt.url}{'&' if '?' in excerpt.url else '?'}t={begins}s")
    return clip_data


def _references(item: core.Item, reference: core.Reference) -> list[str]:
    """The reference and the other accepted answers, or that it is unanswerable, and the criteria."""
    spoken = [f"{criterion.points:+g}: {criterion.criterion}" for criterion in reference.criteria]
    if reference.unanswerable:
        return ["unanswerable", *spoken]
    if not item.has_answer:
        return spoken
    return [_spoken(item, reference.answer), *map(as_text, reference.accepted), *spoken]


def _spoken(item: core.Item, value: Any) -> str:
    """A value of the item's format as text; orderings have arrows."""
    if isinstance(item.answer, OrderingFormat) and isinstance(value, list):
        return " > ".join(map(as_text, value))
    return as_text(value)


def _yes_or_share(metric: core.Metric, value: float) -> str:
    if value in {metric.low, metric.high}:
        return "yes" if value == metric.high else "no"
    return metric.show(value)


def _outcome(source: Source, item: core.Item, answer: core.Answer, scores: list[core.Score]) -> str:
    """The outcome by the first leading metric that scores this item: right, partly, wrong, or not scored. Failed
    answers and those without a verdict are wrong if the policy says so."""
    for key in source.leading:
        metric = source.metric(key.metric)
        if not metric.scores(item.answer.kind, item.tags.get("language", "")):
            continue
        for score in scores:
            if (score.metric, score.scorer) == (key.metric, key.scorer):
                best = metric.high if metric.higher_is_better else metric.low
                return "right" if score.value == best else "wrong" if score.value == metric.worst else "partly"
    unresolved = any(score.metric == UNRESOLVED.name and score.value == 1 for score in scores)
    lacking = answer.status is core.Status.FAILED or unresolved
    return "wrong" if lacking and source.policies == (core.FailedPolicy.WRONG,) else "unscored"


RATED = Limits(picture=48 * 1024, pictures=16 * 1024 * 1024)
"""The default limits."""

_PICTURE = MediaSettings(max_side=320, quality=70)


def rated_data(source: AuditSource, limits: Limits = RATED) -> tuple[BrowserData, Shown]:
    """The content of the browser, and what was left out; questions with the most disagreement come first."""
    maker = _RatedMaker(source, Content(limits))
    shown = maker.content.shown
    answers = maker.answers()
    first = {one.item: one for one in reversed(source.table.ratings)}
    apart = {item: _apart(given) for item, given in answers.items()}
    items: list[dict[str, Any]] = []
    for item in sorted(answers, key=lambda item: -apart[item])[: limits.items]:
        rating = first[item]
        facets = {"language": rating.language and spoken_language(rating.language), "dataset": rating.dataset}
        items.append(
            {
                "id": core.clean(item),
                "group": core.clean(rating.cluster),
                "facets": {name: [core.clean(value)] for name, value in facets.items() if value},
                **maker.question(source.questions.get(item)),
                "answers": answers[item],
            }
        )
    texts = list(map(compact, items))
    whole = _within(texts, limits.characters)
    if not source.questions:
        shown.unknown_questions = 0
    dimensions = list(dict.fromkeys(dimension for _, dimension in source.table.dimensions))
    head = {
        "runs": [{"system": name, "condition": "", "baseline": False} for name in maker.systems],
        "facets": [facet for name in ("language", "dataset") if len((facet := _facet(name, items))[2]) > 1],
        "statuses": [],
        "ratings": {
            "raters": core.clean(source.raters),
            "metrics": [core.clean(metric.name) for metric in source.found.metrics],
            "dimensions": [core.plain_name(dimension) for dimension in dimensions],
        },
    }
    data = pack(head, texts[:whole], {}, limit=limits.bytes)
    shown.items = data.kept
    shown.answers = sum(len(item["answers"]) for item in items[: data.kept])
    shown.items_left_out = len(answers) - data.kept
    shown.order = ", those with the least disagreement"
    return data, shown


def _facet(name: str, items: Sequence[dict[str, Any]]) -> list[Any]:
    return [name, name, sorted({value for item in items for value in item["facets"].get(name, ())})]


def _brief(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _note(**beside: float | None) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in beside.items() if value is not None)


@dataclass
class _RatedMaker:
    source: AuditSource
    content: Content
    systems: dict[str, int] = field(default_factory=dict)

    def question(self, question: Question | None) -> dict[str, Any]:
        if question is None:
            self.content.shown.unknown_questions += 1
            return {}
        data: dict[str, Any] = {"question": self.content.text(question.text)}
        if question.references:
            data["references"] = [
                [
                    self.content.text(reference.text),
                    _note(frequency=reference.frequency, completeness=reference.completeness),
                ]
                for reference in question.references
            ]
        if question.images:
            data["pictures"] = [self._picture(*picture) for picture in _pictures(question)]
        return data

    def _picture(self, name: str, scan: core.Scan | None) -> list[str]:
        """The picture's name, and the picture itself if it is available."""
        root = self.source.image_root
        return [core.clean(name)] if root is None else self.content.picture(name, _jpeg(root, name, scan))

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """The answers of each item in the order of the ratings, each with its ratings and scores by dimension."""
        source = self.source
        known = lengths(source.table)
        names = dict.fromkeys(dimension for _, dimension in source.table.dimensions)
        number = {name: position for position, name in enumerate(names)}
        given: dict[Key, list[list[Any]]] = {}
        for rating in source.table.ratings:
            given.setdefault(rating.key, []).append([core.clean(rating.rater), _brief(rating.value)])
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for rating in source.table.ratings:
            key = rating.item, rating.system
            if key not in found:
                found[key] = {
                    "run": self.systems.setdefault(core.clean(rating.system), len(self.systems)),
                    "text": self.content.text(rating.candidate),
                    "length": known[key],
                    "rated": {},
                }
                if said := source.judgements.get(key):
                    found[key]["said"] = [self.content.judgement(judgement) for judgement in said]
            found[key]["rated"][number[rating.dimension]] = [given[rating.key], *self._scores(rating.key)]
        by_item: dict[str, list[dict[str, Any]]] = {}
        for (item, _), answer in found.items():
            answer["rated"] = [[row, *scores] for row, scores in sorted(answer["rated"].items())]
            by_item.setdefault(item, []).append(answer)
        return by_item

    def _scores(self, key: Key) -> tuple[list[float | None], list[float | None]]:
        """The score of each metric, and its gap to the ratings."""
        metrics = self.source.found.metrics
        gaps = [self.source.found.discrepancies[metric.name].get(key) for metric in metrics]
        return (
            [_brief(metric.scores.get(key)) for metric in metrics],
            [None if gap is None else round(gap, 4) for gap in gaps],
        )


def _pictures(question: Question) -> list[tuple[str, core.Scan | None]]:
    """The names of a question's images, and how to render medical images."""
    return list(zip(question.images, question.scans or [None] * len(question.images), strict=True))


def _jpeg(root: Path, name: str, scan: core.Scan | None) -> bytes | None:
    try:
        return encode(read_image(locate(root, name), scan), None, _PICTURE)
    except core.InputError:
        return None


def _apart(answers: Sequence[dict[str, Any]]) -> float:
    """The largest disagreement of an answer: the mean of its absolute gaps."""
    means = []
    for answer in answers:
        gaps = [abs(gap) for *_, row in answer["rated"] for gap in row if gap is not None]
        if gaps:
            means.append(sum(gaps) / len(gaps))
    return max(means, default=-1.0)
