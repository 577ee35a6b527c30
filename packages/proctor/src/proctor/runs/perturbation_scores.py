"""Perturbation tests: the scores that a scorer gives changed answers, beside those of the original answers.

Only paid judgements are stored: a changed answer belongs to no run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from proctor.core import Answer, Item, Judgement, JudgementCache, Score, Scorer, Status, content_hash, generator
from proctor.core.formats import FreeTextFormat
from proctor.judges import CONTRADICTION, UNRESOLVED
from proctor.runs.scoring import JudgeLimits, JudgeTally, SeesAnswers, judge_each
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.audits import ProbedAnswer


_Key = tuple[str, str, int]
"""An answer: the item's id, "system / condition", and the repetition."""


@dataclass(frozen=True)
class DrawnAnswer:
    """An answer to change, with its system and language and the other systems' answers to its item (`beside`)."""

    item: Item
    answer: Answer
    system: str
    language: str
    beside: tuple[Answer, ...]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.answer.wording


@dataclass(frozen=True)
class Probe:
    """A text to score: a drawn answer changed by one perturbation, or the original ("")."""

    drawn: DrawnAnswer
    perturbation: str
    item: Item
    answer: Answer


@dataclass(frozen=True)
class AnswersOf:
    """The answers in free text of some runs to the items that count (or to all), in all repetitions: by item, system and
    repetition."""

    store: Store
    runs: Sequence[Run]
    all_items: bool = False
    given: dict[_Key, tuple[Item, Answer]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for run in self.runs:
            card, items = self.store.card(run.benchmark), list(self.store.items(run.benchmark))
            free = [one for one in items if isinstance(one.answer, FreeTextFormat)]
            counted = [one for one in free if self.all_items or card.counts(one)]
            for repetition in self.store.repetitions(run):
                answers = self.store.answers(run, repetition)
                for item in counted:
                    answer = answers.get(item.id)
                    if answer is not None and answer.status is Status.ANSWERED and answer.wording.strip():
                        self.given[item.id, f"{run.system} / {run.condition}", repetition] = (item, answer)

    def draw(self, most: int, seed: int) -> list[DrawnAnswer]:
        """At most this many answers in each language (0: all), spread evenly over the groups: one of each group before a
        second one of any, and of a group one by each system to each item before another repetition of any."""
        from proctor.audits import language_of

        by_language: dict[str, dict[str, tuple[list[_Key], list[_Key]]]] = {}
        for key in sorted(self.given):
            item, answer = self.given[key]
            groups = by_language.setdefault(language_of(item, answer.wording), {})
            first, again = groups.setdefault(item.group, ([], []))
            (again if first and first[-1][:2] == key[:2] else first).append(key)
        found = []
        for language, groups in sorted(by_language.items()):
            rng = generator(seed, "perturb", "answers", language)
            more = generator(seed, "perturb", "repetitions", language)
            mixed = [
                [first[k] for k in rng.permutation(len(first))] + [again[k] for k in more.permutation(len(again))]
                for _, (first, again) in sorted(groups.items())
            ]
            mixed = [mixed[k] for k in rng.permutation(len(mixed))]
            taken = [key for round_ in zip_longest(*mixed) for key in round_ if key is not None]
            found += [self._drawn(key, language) for key in taken[: most or None]]
        return found

    def _drawn(self, key: _Key, language: str) -> DrawnAnswer:
        """The answer, beside one of each other system: the same repetition, else its first."""
        item, answer = self.given[key]
        beside: dict[str, Answer] = {}
        for (name, system, repetition), (_, other) in self.given.items():
            if name == key[0] and system != key[1] and (repetition == key[2] or system not in beside):
                beside[system] = other
        return DrawnAnswer(item, answer, key[1], language, tuple(beside.values()))

    def probes(self, drawn: Sequence[DrawnAnswer], names: Sequence[str], seed: int) -> list[Probe]:
        """Every answer unchanged, and changed by every perturbation that applies."""
        from proctor.audits import PERTURBATIONS, Material, language_of

        spoken: dict[tuple[str, str], list[tuple[Item, str]]] = {}
        translated: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for (_, system, _), (item, answer) in sorted(self.given.items()):
            language = language_of(item, answer.wording)
            spoken.setdefault((system, language), []).append((item, answer.wording))
            translated.setdefault((system, item.group), []).append((language, answer.wording))
        found = [Probe(drawn_answer, "", drawn_answer.item, drawn_answer.answer) for drawn_answer in drawn]
        for name in names:
            for drawn_answer in drawn:
                again = [f"repetition {number}"] if (number := drawn_answer.answer.repetition) else []
                rng = generator(seed, "perturb", name, drawn_answer.item.id, drawn_answer.system, *again)
                own = spoken[drawn_answer.system, drawn_answer.language]
                others = [text for item, text in own if item.group != drawn_answer.item.group]
                foreign = [
                    text
                    for language, text in translated[drawn_answer.system, drawn_answer.item.group]
                    if language != drawn_answer.language
                ]
                material = Material(
                    item=drawn_answer.item,
                    text=drawn_answer.text,
                    language=drawn_answer.language,
                    other=others[int(rng.integers(len(others)))] if others else "",
                    translated=foreign[0] if foreign else "",
                    rng=rng,
                )
                changed = PERTURBATIONS[name].of(material, drawn_answer.answer)
                if changed is not None:
                    found.append(Probe(drawn_answer, name, *changed))
        return found


class SecondJudgements:
    """A judgement cache for repeated requests, with keys of its own."""

    def __init__(self, judgements: JudgementCache) -> None:
        self._judgements = judgements

    def get(self, key: str) -> Judgement | None:
        """The repeated judgement under this key."""
        return self._judgements.get(_second(key))

    def put(self, judgement: Judgement) -> None:
        """Stores a repeated judgement."""
        self._judgements.put(judgement.model_copy(update={"key": _second(judgement.key)}))


class NoJudgements:
    """A judgement cache that stores nothing."""

    def get(self, _: str) -> Judgement | None:
        """None."""
        return None

    def put(self, judgement: Judgement) -> None:
        """Does nothing."""


async def probe(
    scorer: Scorer,
    again: Scorer,
    probes: Sequence[Probe],
    limits: JudgeLimits,
    *,
    stop: asyncio.Event | None = None,
    on_change: Callable[[JudgeTally], None] = lambda _: None,
) -> list[ProbedAnswer]:
    """The scores of original and changed answers. `again` is the same scorer with its own cache, for repeated requests.

    A scorer that compares answers sees each changed answer among the other systems' original ones. Answers without a
    verdict are missing, with the reason. After `give_up_after` infrastructure errors in a row the rest is missing.
    """
    from proctor.audits import AGAIN

    stop, tally = stop or asyncio.Event(), JudgeTally()
    work = [one for one in probes if scorer.applies(one.item)]
    tally.total = len(work)
    given: dict[int, dict[str, float]] = {}
    missing: dict[int, str] = {}
    for batch in _batches(work):
        by = again if batch[0].perturbation == AGAIN else scorer
        if stop.is_set():
            missing |= dict.fromkeys(map(id, batch), "stopped")
            continue
        if isinstance(by, SeesAnswers):
            await by.see([pair for one in batch for pair in _shown(one)])
        scored, lacking = await _scored(by, batch, limits, tally, stop, on_change)
        given |= scored
        missing |= lacking
    return _gathered(work, given, missing)


def _batches(work: Sequence[Probe]) -> Iterator[list[Probe]]:
    """Probes of one perturbation in which each item occurs once."""
    rounds: dict[tuple[str, int], list[Probe]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for one in work:
        key = (one.perturbation, one.item.id)
        rounds.setdefault((one.perturbation, seen[key]), []).append(one)
        seen[key] += 1
    yield from rounds.values()


def _shown(one: Probe) -> Iterable[tuple[Item, Answer]]:
    return [(one.item, one.answer), *((one.item, other) for other in one.drawn.beside)]


async def _scored(
    scorer: Scorer,
    batch: Sequence[Probe],
    limits: JudgeLimits,
    tally: JudgeTally,
    stop: asyncio.Event,
    on_change: Callable[[JudgeTally], None],
) -> tuple[dict[int, dict[str, float]], dict[int, str]]:
    """Scores by probe, and the reasons of missing ones."""
    better = {metric.name: 1.0 if metric.higher_is_better else -1.0 for metric in scorer.metrics}
    given: dict[int, dict[str, float]] = {}
    missing: dict[int, str] = {}

    def keep(row: int, scores: Sequence[Score]) -> None:
        one = id(batch[row])
        given[one] = _values(scores, better)
        if any(score.metric == UNRESOLVED.name and score.value for score in scores):
            missing[one] = tally.last_reason or "no majority"
        on_change(tally)

    await judge_each(scorer, [(one.item, one.answer, False) for one in batch], limits, tally, stop, keep)
    return given, missing | {id(one): "stopped" for one in batch if id(one) not in given}


def _values(scores: Sequence[Score], better: dict[str, float]) -> dict[str, float]:
    return {
        score.metric: better.get(score.metric, 1.0) * score.value
        for score in scores
        if score.metric not in {CONTRADICTION.name, UNRESOLVED.name}
    }


def _gathered(work: Sequence[Probe], given: dict[int, dict[str, float]], missing: dict[int, str]) -> list[ProbedAnswer]:
    from proctor.audits import ProbedAnswer

    by_answer: dict[_Key, list[Probe]] = {}
    for one in work:
        by_answer.setdefault((one.drawn.item.id, one.drawn.system, one.drawn.answer.repetition), []).append(one)
    return [
        ProbedAnswer(
            item=item,
            system=system,
            group=own[0].drawn.item.group,
            language=own[0].drawn.language,
            original=next((given.get(id(one), {}) for one in own if not one.perturbation), {}),
            changed={one.perturbation: given.get(id(one), {}) for one in own if one.perturbation},
            missing={one.perturbation: missing[id(one)] for one in own if id(one) in missing},
            repetition=repetition,
        )
        for (item, system, repetition), own in by_answer.items()
    ]


def _second(key: str) -> str:
    return content_hash([key, "asked again"])
