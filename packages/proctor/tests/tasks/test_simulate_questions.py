"""Questions of the simulated procedures: every reference recomputed from the files, and nothing to be guessed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from proctor.audits.items import audit_items
from proctor.core import Item, Reference
from proctor.core.formats import ChoiceFormat
from proctor.tasks.simulated import RULES, ask, candidates
from proctor.tasks.simulated.pictures import CLASSES, Renderer
from proctor.tasks.simulated.reader import SimulatedQuestion
from proctor.tasks.simulated.script import draw_script
from proctor.tasks.simulated.simulation import QUESTION_TYPES, Truth, observe
from proctor.tracks import CandidateQuestion

SECONDS = 24.0
PHRASES = {
    "white gauze sponge": "sponge",
    "green specimen bag": "specimen bag",
    "thin curved needle": "needle",
    "silvery metal clip": "clip",
    "brownish gallstone": "gallstone",
}


def truths_of(seed: int, videos: int = 6) -> dict[str, Truth]:
    found = {}
    for number in range(videos):
        script = draw_script(seed, f"sim-{number:03d}", SECONDS)
        found[script.video] = observe(script, Renderer(script, (384, 216), seed))
    return found


@pytest.fixture(scope="module")
def truths() -> dict[int, dict[str, Truth]]:
    return {seed: truths_of(seed) for seed in range(5)}


class Files:
    """One video's log and tracks as plain JSON, read in another way than the rules do."""

    def __init__(self, truth: Truth) -> None:
        self.events: list[dict[str, Any]] = truth.script.model_dump(mode="json")["events"]
        tracks = truth.annotation.model_dump(mode="json")
        self.size = (tracks["video"]["width"], tracks["video"]["height"])
        self.moments: dict[float, list[dict[str, Any]]] = {
            float(second): [] for second in range(int(tracks["video"]["seconds"]))
        }
        for one in tracks["sightings"]:
            self.moments[float(one["second"])].append(one)

    def times(self, kind: str, edge: str, name: str | None = None) -> list[float]:
        return sorted(
            event[edge] for event in self.events if event["kind"] == kind and name in (None, event["class_name"])
        )

    def first(self, kind: str, edge: str) -> list[str]:
        """Classes in the order in which it happens to them first."""
        ordered = sorted((event for event in self.events if event["kind"] == kind), key=lambda event: event[edge])
        return list(dict.fromkeys(str(event["class_name"]) for event in ordered))

    def seen(self, time: float) -> list[str]:
        return [one["class_name"] for one in self.moments[time] if one["box"] and one["visibility"] > 0.5]

    def covered(self, name: str) -> bool:
        """Whether there is a moment without a pixel of it between two moments with it (tracks alone)."""
        shown = [
            max((one["visibility"] for one in objects if one["class_name"] == name), default=None)
            for _, objects in sorted(self.moments.items())
        ]
        inside = [share for share in shown if share is not None]
        return any(a > 0.5 and 0 in inside[i:] and max(inside[i:]) > 0.5 for i, a in enumerate(inside)) and any(
            share == 0 and max(inside[:i], default=0) > 0.5 and max(inside[i:]) > 0.5 for i, share in enumerate(inside)
        )


def named(text: str) -> list[str]:
    found = sorted((text.index(phrase), name) for phrase, name in PHRASES.items() if phrase in text)
    return [name for _, name in found]


def at(text: str) -> float:
    hours, minutes, seconds = map(int, re.findall(r"(\d\d):(\d\d):(\d\d)", text)[0])
    return float(hours * 3600 + minutes * 60 + seconds)


def where(files: Files, text: str) -> str:
    (one,) = [o for o in files.moments[at(text)] if o["class_name"] == named(text)[0] and o["visibility"] > 0.5]
    x = (one["box"]["x"] + one["box"]["width"] / 2) / files.size[0]
    y = (one["box"]["y"] + one["box"]["height"] / 2) / files.size[1]
    return f"{'upper' if y < 0.5 else 'lower'} {'left' if x < 0.5 else 'right'}"


def only(candidate: CandidateQuestion, names: Iterator[str]) -> str:
    """The one option of a choice among these classes."""
    wanted = set(names)
    (phrase,) = [option for option in candidate.options if PHRASES[option] in wanted]
    return phrase


def earliest(candidate: CandidateQuestion, order: list[str]) -> str:
    return min(candidate.options, key=lambda option: (order + list(PHRASES.values())).index(PHRASES[option]))


def in_order(candidate: CandidateQuestion, order: list[str]) -> list[str]:
    return [name for name in order if name in getattr(candidate.format, "labels", ())]


REFERENCES: dict[str, Callable[[Files, CandidateQuestion], Any]] = {
    "seen": lambda f, o: bool(f.times("inserted", "start", named(o.question)[0])),
    "seen-at": lambda f, o: named(o.question)[0] in f.seen(at(o.question)),
    "kinds-seen": lambda f, _: sorted({e["class_name"] for e in f.events}),
    "kinds-seen-at": lambda f, o: sorted(set(f.seen(at(o.question)))),
    "never": lambda f, o: only(o, iter(set(PHRASES.values()) - {e["class_name"] for e in f.events})),
    "how-many": lambda f, o: len(f.times("inserted", "start", named(o.question)[0])),
    "how-many-at": lambda f, o: len(f.seen(at(o.question))),
    "plural": lambda f, o: only(o, (n for n in PHRASES.values() if len(f.times("inserted", "start", n)) > 1)),
    "how-many-out": lambda f, _: len(f.times("retrieved", "end")),
    "when-seen": lambda f, o: f.times("inserted", "start", named(o.question)[0])[:1],
    "when-each": lambda f, o: f.times("inserted", "start", named(o.question)[0]),
    "when-out": lambda f, o: f.times("retrieved", "end", named(o.question)[0]),
    "before": lambda f, o: (
        f.first("inserted", "start").index(named(o.question)[0])
        < f.first("inserted", "start").index(named(o.question)[1])
    ),
    "first-seen": lambda f, o: earliest(o, f.first("inserted", "start")),
    "order-seen": lambda f, o: in_order(o, f.first("inserted", "start")),
    "order-out": lambda f, o: in_order(o, f.first("retrieved", "end")),
    "out": lambda f, o: named(o.question)[0] in f.first("retrieved", "end"),
    "kinds-out": lambda f, _: sorted(f.first("retrieved", "end")),
    "first-out": lambda f, o: earliest(o, f.first("retrieved", "end")),
    "hidden": lambda f, o: f.covered(named(o.question)[0]),
    "which-hidden": lambda f, o: only(o, (e["class_name"] for e in f.events if e["kind"] == "hidden")),
    "moved": lambda f, o: bool(f.times("moved", "start", named(o.question)[0])),
    "which-moved": lambda f, o: only(o, (e["class_name"] for e in f.events if e["kind"] == "moved")),
    "where": lambda f, o: where(f, o.question),
}


def test_every_reference_follows_from_the_files(truths: dict[int, dict[str, Truth]]) -> None:
    checked: Counter[str] = Counter()
    for some in truths.values():
        for truth in some.values():
            files = Files(truth)
            for candidate in candidates(truth):
                expected = REFERENCES[candidate.rule](files, candidate)
                if candidate.format.kind == "timestamps":
                    expected = [round(time, 1) for time in expected]
                assert candidate.answer == expected, candidate
                checked[candidate.rule] += 1
    assert set(checked) == set(RULES) == set(REFERENCES)
    assert min(checked.values()) >= 3, checked


def test_both_answers_of_every_yes_or_no_rule_occur(truths: dict[int, dict[str, Truth]]) -> None:
    pool = [candidate for some in truths.values() for truth in some.values() for candidate in candidates(truth)]
    for rule in ("seen", "seen-at", "before", "out", "hidden", "moved"):
        assert {candidate.answer for candidate in pool if candidate.rule == rule} == {True, False}, rule


def test_orders_and_firsts_are_a_second_apart(truths: dict[int, dict[str, Truth]]) -> None:
    for some in truths.values():
        for truth in some.values():
            first = truth.first_in()
            for candidate in candidates(truth):
                if candidate.rule == "order-seen":
                    times = [first[str(name)] for name in candidate.answer]  # type: ignore[union-attr]
                    assert all(b - a >= 1.0 for a, b in pairwise(times))


def asked(truths: dict[int, dict[str, Truth]], per_video: int = 12) -> dict[int, list[SimulatedQuestion]]:
    return {seed: ask(some, per_video, seed) for seed, some in truths.items()}


def items_of(questions: dict[int, list[SimulatedQuestion]]) -> list[Item]:
    return [
        Item(
            id=f"{seed}-{question.id}",
            group=f"{seed}-{question.video}",
            question=question.question,
            answer=question.format,
            options=question.options,
            reference=Reference(answer=question.answer),
        )
        for seed, some in questions.items()
        for question in some
    ]


def test_the_same_seed_asks_the_same(truths: dict[int, dict[str, Truth]]) -> None:
    assert ask(truths[0], 12, 0) == ask(truths[0], 12, 0)
    assert ask(truths[0], 12, 0) != ask(truths[0], 12, 1)


def test_formats_take_turns_and_every_question_is_asked_once(truths: dict[int, dict[str, Truth]]) -> None:
    for some in asked(truths).values():
        kinds = Counter(question.format.kind for question in some)
        assert set(kinds) == {"choice", "count", "binary", "classes", "timestamps", "ordering"}
        assert min(kinds.values()) >= 8, kinds
        assert len({question.id for question in some}) == len(some) == 72
        texts = [(q.video, q.question, getattr(q.format, "labels", ())) for q in some]
        assert len(set(texts)) == len(texts)
        for question in some:
            question.format.check(question.answer, question.options)
            assert question.rule in QUESTION_TYPES[question.question_type]


def test_more_questions_than_a_video_offers_are_not_invented() -> None:
    script = draw_script(0, "v", 8.0)
    truth = observe(script, Renderer(script, (256, 144), 0))
    some = ask({"v": truth}, 60, 0)
    assert 10 < len(some) <= 60
    assert len({(q.question, getattr(q.format, "labels", ())) for q in some}) == len(some)


def test_every_rule_has_one_question_type() -> None:
    listed = [rule for rules in QUESTION_TYPES.values() for rule in rules]
    assert sorted(listed) == sorted(RULES)


def test_phrases_are_equally_long_and_name_their_class() -> None:
    assert {kind.phrase: kind.name for kind in CLASSES} == PHRASES
    assert {len(kind.phrase) for kind in CLASSES} == {18}
    assert all(kind.name in kind.phrase for kind in CLASSES)


def test_answers_are_balanced(truths: dict[int, dict[str, Truth]]) -> None:
    pooled: Counter[tuple[str, bool]] = Counter()
    for some in asked(truths).values():
        yes = [question.answer for question in some if question.format.kind == "binary"]
        assert abs(yes.count(True) - yes.count(False)) <= 2
        letters = Counter(str(q.answer) for q in some if isinstance(q.format, ChoiceFormat))
        assert max(letters.values()) - min(letters[letter] for letter in "ABCD") <= 1
        counts = Counter(q.answer for q in some if q.format.kind == "count")
        assert max(counts.values()) <= 0.4 * sum(counts.values())
        pooled.update((q.rule, bool(q.answer)) for q in some if q.format.kind == "binary")
    for rule in {rule for rule, _ in pooled}:
        assert abs(pooled[rule, True] - pooled[rule, False]) <= 0.5 * (pooled[rule, True] + pooled[rule, False]) + 1


def test_the_item_audit_finds_nothing(truths: dict[int, dict[str, Truth]]) -> None:
    """Over 30 videos the best way to answer without looking is at chance, where there is a chance level,
    and no better than the usual answer elsewhere."""
    audit = audit_items(items_of(asked(truths)), draws=400, facets=[])
    for part in audit.formats:
        assert part.selected is not None, part.kind
        reached = part.selected.accuracy
        level = part.chance if part.chance is not None else max(0.25, part.constant_share)
        assert reached.ci_low is not None
        assert reached.ci_low <= level, (part.kind, reached)
    (choice,) = [part for part in audit.formats if part.kind == "choice"]
    assert choice.options is not None
    assert all(contrast.p_holm is None or contrast.p_holm > 0.05 for contrast in choice.options.contrasts)
