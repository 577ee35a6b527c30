"""A store's items with every answer, its scores, and what judges said of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from proctor.core import Answer, Excerpt, FailedPolicy, Item, Metric, Score, Status, VideoClip, clean, plain_name
from proctor.core.formats import ChoiceFormat, OrderingFormat, option_letters
from proctor.judges import UNRESOLVED
from proctor.reports.browser.content import Content, Limits, Shown, Thumbnails, as_text
from proctor.reports.source import Source

_STRIP = 24  # labels of one order
_LABEL = 40  # characters of one label


def browser_data(source: Source, limits: Limits, thumbnails: Thumbnails | None = None) -> tuple[dict[str, Any], Shown]:
    """Everything that the browser shows, and what it had to leave out."""
    maker = _Maker(source, Content(limits), thumbnails)
    shown = maker.content.shown
    kept = source.items[: limits.items]
    columns = {name: source.table.facet(name) for name in source.facets}
    items = [
        maker.item(item, {name: list(map(clean, values[place])) for name, values in columns.items() if values[place]})
        for place, item in enumerate(kept)
    ]
    runs = source.ordered_runs
    answers: list[list[dict[str, Any]]] = [[] for _ in kept]
    for number, run in enumerate(runs):
        scores, given = source.scores(run, len(kept)), source.answers(run, len(kept))
        for place in sorted(given):
            answers[place].append(maker.answer(number, kept[place], given[place], scores.get(place, [])))
    whole = _within(answers, limits.characters)
    shown.items = whole
    shown.items_left_out = len(source.items) - whole
    shown.order = " (the export has all)"
    votes = source.votes(maker.votes)
    data = {
        "runs": [
            {"system": clean(run.system), "condition": clean(run.condition), "baseline": source.is_baseline(run.system)}
            for run in runs
        ],
        "facets": [[name, plain_name(name), list(map(clean, source.values(name)))] for name in source.facets],
        "statuses": sorted(Counter(one["status"] for given in answers[:whole] for one in given)),
        "items": [item | {"answers": given} for item, given in zip(items[:whole], answers[:whole], strict=True)],
        "votes": [maker.content.vote(votes[key]) if key in votes else None for key in maker.votes],
    }
    return data, shown


@dataclass
class _Maker:
    source: Source
    content: Content
    thumbnails: Thumbnails | None
    votes: dict[str, int] = field(default_factory=dict)

    def item(self, item: Item, facets: dict[str, list[str]]) -> dict[str, Any]:
        text = self.content.text
        found: dict[str, Any] = {
            "id": clean(item.id),
            "group": clean(item.group),
            "format": plain_name(item.answer.kind),
            "question": text(item.question),
            "facets": facets,
        }
        if item.options:
            found["options"] = [text(option) for option in item.options]
        if item.reference is not None:
            spoken = [_spoken(item, item.reference.answer), *map(as_text, item.reference.accepted)]
            found["references"] = [[text(one), ""] for one in spoken]
            if item.reference.rationale:
                found["rationale"] = text(item.reference.rationale)
            if isinstance(item.answer, ChoiceFormat):
                found["keys"] = [as_text(one) for one in (item.reference.answer, *item.reference.accepted)]
        known = self.source.card.excerpts
        clips = [medium for medium in item.media if isinstance(medium, VideoClip)]
        if clips:
            found["clips"] = [_where(clip, known.get(clip.source)) for clip in clips]
        pictures = [
            picture
            for label, jpeg in (self.thumbnails(item) if self.thumbnails else ())
            if len(picture := self.content.picture(label, jpeg)) > 1
        ]
        if pictures:
            found["pictures"] = pictures
        if isinstance(item.answer, OrderingFormat):
            found["strip"] = _order(item.answer.labels)
            if item.reference is not None:
                found["order"] = _order(item.reference.answer)
        return found

    def answer(self, run: int, item: Item, answer: Answer, scores: list[Score]) -> dict[str, Any]:
        text = self.content.text
        self.content.shown.answers += 1
        found: dict[str, Any] = {"run": run, "status": answer.status.value, "text": text(answer.text)}
        read = "" if answer.parsed is None else _spoken(item, answer.parsed)
        if read and read != answer.text:
            found["read"] = text(read)
        for name, said in (("problem", answer.problem), ("reason", answer.reason)):
            if said:
                found[name] = text(said)
        if isinstance(item.answer, OrderingFormat) and isinstance(answer.parsed, list):
            found["order"] = _order(answer.parsed)
        found |= self._beside(item, answer)
        if answer.timing is not None:
            found["seconds"] = round(answer.timing.model_s, 3)
        if answer.usage.requests:
            found["tokens"] = [answer.usage.input_tokens, answer.usage.output_tokens]
        if scores:
            found["marks"] = [self._mark(score) for score in scores]
        found["outcome"] = _outcome(self.source, item, answer, scores)
        return found

    def _beside(self, item: Item, answer: Answer) -> dict[str, Any]:
        """What was recorded beside the answer; what people look for first has a place of its own."""
        found: dict[str, Any] = {}
        extra = dict(answer.extra)
        if isinstance(extra.get("rationale"), str):
            found["why"] = self.content.text(str(extra.pop("rationale")))
        order = extra.pop("options_shown", None)
        if isinstance(order, list) and order != list(item.options):
            found["shown"] = [self.content.text(as_text(option)) for option in order]
            if own := _own_letter(item, answer, order):
                found["other"] = f"saw the options in another order: its {own} is {answer.parsed} here"
        if extra:
            found["more"] = self.content.text(json.dumps(extra, ensure_ascii=False, indent=1))
        return found

    def _mark(self, score: Score) -> dict[str, Any]:
        metric = self.source.metric(score.metric)
        shown = f"{score.value:.4g}" if not metric.percent else _yes_or_share(metric, score.value)
        found: dict[str, Any] = {"metric": clean(metric.label), "value": shown, "scorer": clean(score.scorer)}
        if score.label and metric.percent:
            found["value"] = clean(score.label)
        elif score.label and score.label != shown:
            found["label"] = clean(score.label)
        if score.vote_key:
            found["vote"] = self.votes.setdefault(score.vote_key, len(self.votes))
        return found


def _within(answers: list[list[dict[str, Any]]], most: int) -> int:
    """How many items fit into a number of characters of answers."""
    spent = 0
    for place, given in enumerate(answers):
        spent += sum(len(json.dumps(one, ensure_ascii=False)) for one in given)
        if spent > most:
            return place
    return len(answers)


def _order(labels: Any) -> list[str]:
    """Labels as a strip shows them: short, and no more than a strip holds."""
    said = labels if isinstance(labels, list | tuple) else []
    return [clean(as_text(label))[:_LABEL] for label in said[:_STRIP]]


def _own_letter(item: Item, answer: Answer, order: list[Any]) -> str:
    """The letter that the chosen option had in the order that the system saw; "" where that is not known."""
    if not isinstance(item.answer, ChoiceFormat) or not isinstance(answer.parsed, str):
        return ""
    letters = option_letters(len(item.options))
    if answer.parsed not in letters or sorted(map(str, order)) != sorted(item.options):
        return ""
    return letters[order.index(item.options[letters.index(answer.parsed)])]


def _where(clip: VideoClip, excerpt: Excerpt | None) -> dict[str, str]:
    """Start and end of a clip in words, and the address at which its source begins there."""
    end = "its end" if clip.end is None else f"{clip.end:.1f} s"
    found = {"text": f"clip: {clip.start:.1f} s to {end} of {clean(clip.source)}"}
    if excerpt is not None and excerpt.url.startswith("https://"):
        begins = max(0, int(excerpt.start + clip.start))
        found["url"] = clean(f"{excerpt.url}{'&' if '?' in excerpt.url else '?'}t={begins}s")
    return found


def _spoken(item: Item, value: Any) -> str:
    """A value of the item's format in words: an order with its arrows, anything else as it is written."""
    if isinstance(item.answer, OrderingFormat) and isinstance(value, list):
        return " > ".join(map(as_text, value))
    return as_text(value)


def _yes_or_share(metric: Metric, value: float) -> str:
    if value in {metric.low, metric.high}:
        return "yes" if value == metric.high else "no"
    return metric.show(value)


def _outcome(source: Source, item: Item, answer: Answer, scores: list[Score]) -> str:
    """How the answer did by the first leading metric that marks this item: right, partly, wrong; not marked where it has
    no such score. What failed or has no verdict is wrong where the policy says so."""
    for key in source.leading:
        metric = source.metric(key.metric)
        if not metric.marks(item.answer.kind, item.tags.get("language", "")):
            continue
        for score in scores:
            if (score.metric, score.scorer) == (key.metric, key.scorer):
                best = metric.high if metric.higher_is_better else metric.low
                return "right" if score.value == best else "wrong" if score.value == metric.worst else "partly"
    unresolved = any(score.metric == UNRESOLVED.name and score.value == 1 for score in scores)
    lacking = answer.status is Status.FAILED or unresolved
    return "wrong" if lacking and source.policies == (FailedPolicy.WRONG,) else "unmarked"
