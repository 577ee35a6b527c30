"""The item browser's data: every item with every answer, as JSON that the page's script shows as text."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proctor.core import Answer, Excerpt, FailedPolicy, Item, Metric, Score, Status, VideoClip, Vote
from proctor.core.formats import ChoiceFormat, OrderingFormat, option_letters
from proctor.judges import UNRESOLVED
from proctor.reports.source import Source
from proctor.reports.words import clean, plain_name
from proctor.runs import Run
from proctor.runs.report_data import load_answers, load_scores

__all__ = ["Limits", "Shown", "Thumbnails", "browser_data"]

_STRIP = 24  # labels of one order
_LABEL = 40  # characters of one label

Thumbnails = Callable[[Item], list[tuple[str, bytes]]]
"""Small JPEGs of an item, each with its label."""


@dataclass(frozen=True)
class Limits:
    """How much goes into the page. What is beyond is left out, and the page says how much that is.

    `items` at most; `text` characters of each text; `thumbnail` bytes of each picture and `thumbnails`
    of all together; `answers` characters of all answers together.
    """

    items: int = 2000
    text: int = 4000
    thumbnail: int = 8 * 1024
    thumbnails: int = 24 * 1024 * 1024
    answers: int = 48 * 1024 * 1024


@dataclass
class Shown:
    """What the browser holds, and what it had to leave out."""

    items: int = 0
    items_left_out: int = 0
    answers: int = 0
    texts_cut: int = 0
    thumbnails: int = 0
    thumbnails_left_out: int = 0
    characters: int = 0
    pixels: int = 0

    def left_out(self, limits: Limits) -> list[str]:
        """One sentence for each limit that was reached."""
        said = []
        if self.items_left_out:
            said.append(
                f"{self.items_left_out} of {self.items + self.items_left_out} items are left out of the browser "
                "(the export has all); the numbers above count them."
            )
        if self.texts_cut:
            said.append(
                f"{self.texts_cut} texts are cut after {limits.text} characters; each says so where it stands."
            )
        if self.thumbnails_left_out:
            said.append(
                f"{self.thumbnails_left_out} pictures are left out because they are too large or no JPEG."
            )
        return said


@dataclass
class _Maker:
    source: Source
    limits: Limits
    thumbnails: Thumbnails | None
    shown: Shown = field(default_factory=Shown)
    votes: dict[str, int] = field(default_factory=dict)

    def text(self, text: str) -> str | list[Any]:
        """The text, or where it is too long its beginning with the number of characters cut."""
        text = clean(text)
        self.shown.characters += min(len(text), self.limits.text)
        if len(text) <= self.limits.text:
            return text
        self.shown.texts_cut += 1
        return [text[: self.limits.text], len(text) - self.limits.text]

    def item(self, item: Item, facets: dict[str, list[str]]) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": clean(item.id),
            "group": clean(item.group),
            "format": plain_name(item.answer.kind),
            "question": self.text(item.question),
            "facets": facets,
        }
        if item.options:
            found["options"] = [self.text(option) for option in item.options]
        if item.reference is not None:
            found["reference"] = self.text(_spoken(item, item.reference.answer))
            if item.reference.accepted:
                found["accepted"] = [self.text(_said(one)) for one in item.reference.accepted]
            if item.reference.rationale:
                found["rationale"] = self.text(item.reference.rationale)
            if isinstance(item.answer, ChoiceFormat):
                found["keys"] = [_said(one) for one in (item.reference.answer, *item.reference.accepted)]
        known = self.source.card.excerpts
        clips = [medium for medium in item.media if isinstance(medium, VideoClip)]
        if clips:
            found["clips"] = [_where(clip, known.get(clip.source)) for clip in clips]
        pictures = self._pictures(item)
        if pictures:
            found["pictures"] = pictures
        if isinstance(item.answer, OrderingFormat):
            found["strip"] = self._order(item.answer.labels)
            if item.reference is not None:
                found["order"] = self._order(item.reference.answer)
        return found

    def answer(self, run: int, item: Item, answer: Answer, scores: list[Score]) -> dict[str, Any]:
        self.shown.answers += 1
        found: dict[str, Any] = {"run": run, "status": answer.status.value, "text": self.text(answer.text)}
        read = _read(item, answer)
        if read and read != answer.text:
            found["read"] = self.text(read)
        for name, said in (("problem", answer.problem), ("reason", answer.reason)):
            if said:
                found[name] = self.text(said)
        if isinstance(item.answer, OrderingFormat) and isinstance(answer.parsed, list):
            found["order"] = self._order(answer.parsed)
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
            found["why"] = self.text(str(extra.pop("rationale")))
        order = extra.pop("options_shown", None)
        if isinstance(order, list) and order != list(item.options):
            found["shown"] = [self.text(_said(option)) for option in order]
            if own := _own_letter(item, answer, order):
                found["other"] = f"saw the options in another order: its {own} is {answer.parsed} here"
        if extra:
            found["more"] = self.text(json.dumps(extra, ensure_ascii=False, indent=1))
        return found

    def vote(self, vote: Vote) -> dict[str, Any]:
        reply = {clean(name): self.text(_said(said)) for name, said in vote.reply.items() if said is not None}
        return {"judge": clean(vote.judge), "reply": reply, "flags": [clean(flag) for flag in vote.flags]}

    def _order(self, labels: Any) -> list[str]:
        """Labels as a strip shows them: short, and no more than a strip holds."""
        said = labels if isinstance(labels, list | tuple) else []
        return [clean(_said(label))[:_LABEL] for label in said[:_STRIP]]

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

    def _pictures(self, item: Item) -> list[list[str]]:
        kept = []
        for label, jpeg in self.thumbnails(item) if self.thumbnails else ():
            fits = (
                len(jpeg) <= self.limits.thumbnail and self.shown.pixels + len(jpeg) <= self.limits.thumbnails
            )
            if not fits or not jpeg.startswith(b"\xff\xd8\xff"):
                self.shown.thumbnails_left_out += 1
                continue
            self.shown.thumbnails += 1
            self.shown.pixels += len(jpeg)
            kept.append([clean(label), base64.b64encode(jpeg).decode("ascii")])
        return kept


def browser_data(
    source: Source, limits: Limits, thumbnails: Thumbnails | None = None
) -> tuple[dict[str, Any], Shown]:
    """Everything that the browser shows, as plain JSON data, and what it had to leave out."""
    maker = _Maker(source, limits, thumbnails)
    kept = source.items[: limits.items]
    columns = {name: source.table.facet(name) for name in source.facets}
    items = [
        maker.item(
            item, {name: list(map(clean, values[place])) for name, values in columns.items() if values[place]}
        )
        for place, item in enumerate(kept)
    ]
    runs = sorted(source.runs, key=lambda run: _order(source, run))
    answers: list[list[dict[str, Any]]] = [[] for _ in kept]
    for number, run in enumerate(runs):
        scores = load_scores(source.store, run, source.table, len(kept))
        given = load_answers(source.store, run, source.table, len(kept))
        for place in sorted(given):
            answers[place].append(maker.answer(number, kept[place], given[place], scores.get(place, [])))
    whole = _within(answers, limits.answers)
    maker.shown.items = whole
    maker.shown.items_left_out = len(source.items) - whole
    keys = maker.votes
    votes = source.store.votes(keys)
    data = {
        "runs": [{"system": clean(run.system), "condition": clean(run.condition)} for run in runs],
        "facets": [[name, plain_name(name), list(map(clean, source.values(name)))] for name in source.facets],
        "statuses": sorted(Counter(one["status"] for given in answers[:whole] for one in given)),
        "items": [
            item | {"answers": given} for item, given in zip(items[:whole], answers[:whole], strict=True)
        ],
        "votes": [maker.vote(votes[key]) if key in votes else None for key in keys],
    }
    return data, maker.shown


def _order(source: Source, run: Run) -> tuple[int, int]:
    return source.systems.index(run.system), source.conditions.index(run.condition)


def _within(answers: list[list[dict[str, Any]]], most: int) -> int:
    """How many items fit into so many characters of answers."""
    spent = 0
    for place, given in enumerate(answers):
        spent += sum(len(json.dumps(one, ensure_ascii=False)) for one in given)
        if spent > most:
            return place
    return len(answers)


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


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _spoken(item: Item, value: Any) -> str:
    """A value of the item's format in words: an order with its arrows, anything else as it is written."""
    if isinstance(item.answer, OrderingFormat) and isinstance(value, list):
        return " > ".join(map(_said, value))
    return _said(value)


def _read(item: Item, answer: Answer) -> str:
    return "" if answer.parsed is None else _spoken(item, answer.parsed)


def _yes_or_share(metric: Metric, value: float) -> str:
    if value in {metric.low, metric.high}:
        return "yes" if value == metric.high else "no"
    return metric.show(value)


def _outcome(source: Source, item: Item, answer: Answer, scores: list[Score]) -> str:
    """How the answer did by the first leading metric that marks this item: right, partly, wrong; not marked where it has
    no such score. What failed or has no verdict is wrong where the policy says so."""
    for key in source.leading:
        metric = source.metric(key.metric)
        if not metric.marks(item.answer.kind):
            continue
        for score in scores:
            if (score.metric, score.scorer) == (key.metric, key.scorer):
                best = metric.high if metric.higher_is_better else metric.low
                return (
                    "right" if score.value == best else "wrong" if score.value == metric.worst else "partly"
                )
    unresolved = any(score.metric == UNRESOLVED.name and score.value == 1 for score in scores)
    lacking = answer.status is Status.FAILED or unresolved
    return "wrong" if lacking and source.policies == (FailedPolicy.WRONG,) else "unmarked"
