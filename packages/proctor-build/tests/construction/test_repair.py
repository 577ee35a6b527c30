"""Repaired options: planted artefacts are gone, what is written is what was promised, and nothing is invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from proctor.audits.items import FormatAudit, audit_items
from proctor.core import OPTION_POOL, InputError, Item, Reference, VideoClip, generator, option_writer, reader_of
from proctor.core.formats import ChoiceFormat, FreeTextFormat
from proctor_build.distractors import alike, looks_right, right_answer
from proctor_build.option_exchange import Exchange, exchange
from proctor_build.repair import TO_CONFIRM, RepairedChoices, RepairSettings, accepted_repair, repair_items

ORGANS = ("liver", "kidney", "spleen", "aorta", "bladder", "thyroid")
VERBS = ["rotate", "slide", "tilt", "sweep", "press", "centre", "freeze", "measure"]
THINGS = [
    "probe",
    "beam",
    "border",
    "lobe",
    "duct",
    "wall",
    "window",
    "shadow",
    "contrast",
    "focus",
    "margin",
    "texture",
    "echo",
    "flow",
    "valve",
    "apex",
    "septum",
    "cortex",
    "base",
    "fossa",
    "ridge",
    "vessel",
    "tendon",
    "muscle",
    "fascia",
    "needle",
    "marker",
    "caliper",
    "chamber",
    "plane",
    "axis",
    "gain",
    "depth",
]
GOALS = [
    "orientation",
    "coverage",
    "contrast",
    "alignment",
    "comparison",
    "documentation",
    "confirmation",
    "exclusion",
    "survey",
    "patency",
    "motion",
    "thickness",
    "drainage",
    "calibre",
    "symmetry",
]
QUICK = RepairSettings(rounds=40, most=0.36)

Plant = Callable[[np.random.Generator, str, list[str]], tuple[str, list[str]]]
"""The right option and the wrong ones, changed."""


def made(plant: Plant, seed: int = 0, *, row: int | None = None) -> list[Item]:
    """96 questions in 24 videos, each on one organ that the question names; the right option at random, or at a
    fixed position."""
    rng = generator(seed, "made benchmark")
    items = []

    def said() -> str:
        things = [str(one) for one in rng.choice(THINGS, size=int(rng.integers(2, 6)), replace=False)]
        return " ".join([str(rng.choice(VERBS)), *things, "for", str(rng.choice(GOALS))])

    for number in range(96):
        organ = ORGANS[(number // 4) % len(ORGANS)]
        key, wrong = plant(rng, organ, [said() for _ in range(4)])
        at = int(rng.integers(4)) if row is None else row
        options = [*wrong[:at], key, *wrong[at:]]
        items.append(
            Item(
                id=f"q{number:02d}",
                group=f"video {number // 4:02d}",
                question=f"What is done with the {organ} in this clip?",
                media=(
                    VideoClip(
                        source=f"video {number // 4:02d}", start=20.0 * (number % 4), end=20.0 * (number % 4) + 9
                    ),
                ),
                answer=ChoiceFormat(),
                options=tuple(options),
                reference=Reference(answer="ABCD"[at]),
            )
        )
    return items


def longest(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    del organ
    return f"{texts[0]} {' '.join(map(str, rng.choice(THINGS, size=5)))}", texts[1:]


def shortest(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    del organ
    return texts[0], [f"{text} {' '.join(map(str, rng.choice(THINGS, size=5)))}" for text in texts[1:]]


def nothing(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    del rng, organ
    return texts[0], texts[1:]


def overlap(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    others = [str(one) for one in rng.permutation([one for one in ORGANS if one != organ])]
    return f"{texts[0]} in the {organ}", [
        f"{text} in the {other}" for text, other in zip(texts[1:], others, strict=False)
    ]


def form(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    del organ
    return f"Moved {int(rng.integers(20, 90))}: {texts[0]}", texts[1:]


def converging(rng: np.random.Generator, organ: str, texts: list[str]) -> tuple[str, list[str]]:
    """Each wrong option is the right one with another part changed: what all have in common gives the right one
    away."""
    del organ, texts
    drawn = [str(one) for one in rng.permutation(THINGS)]
    key, rest = drawn[:6], drawn[6:]
    wrong = [[*key[2 * n : 2 * n + 2], *rest[4 * n : 4 * n + 4]] for n in range(3)]
    right, *others = (" ".join(str(one) for one in rng.permutation(some)) for some in (key, *wrong))
    return right, others


def choice_of(items: list[Item]) -> FormatAudit:
    found = audit_items(items, draws=300, facets=()).format("choice")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("plant", "row", "rules"),
    [
        (longest, None, ["longest-option"]),
        (shortest, None, ["shortest-option"]),
        (nothing, 0, ["always-A"]),
        (overlap, None, ["most-question-words", "nearest-to-question"]),
        (form, None, ["most-numbers", "most-capitals", "most-punctuated"]),
        (converging, None, ["least-own-words", "most-typical"]),
    ],
)
def test_a_planted_artefact_is_gone(plant: Plant, row: int | None, rules: list[str]) -> None:
    items = made(plant, row=row)
    before = choice_of(items)
    assert before.selected is not None
    assert before.selected.covers_chance is False
    repaired, _ = accepted_repair(items, QUICK)
    assert len(repaired.items) >= 0.9 * len(items)
    after = choice_of(list(repaired.items.values()))
    assert after.selected is not None
    assert after.selected.covers_chance is True
    known, left = ({one.name: one for one in audit.baselines} for audit in (before, after))
    for rule in rules:
        assert (known[rule].accuracy.value or 0) > 0.6
        low, high = left[rule].accuracy.ci_low, left[rule].accuracy.ci_high
        assert low is not None
        assert high is not None
        assert low <= 0.25 <= high
    assert all(one.p_holm is not None and one.p_holm > 0.05 for one in after.baselines)
    _holds(items, repaired, QUICK)


def _holds(items: list[Item], repaired: RepairedChoices, settings: RepairSettings, spare: Sequence[Item] = ()) -> None:
    """What is promised of every repaired item; `spare` are uncounted choices."""
    before = {item.id: item for item in items}
    keys = {item.id: right_answer(item) for item in (*items, *spare)}
    assert repaired.items.keys() | repaired.left_out.keys() == before.keys()
    assert not repaired.items.keys() & repaired.left_out.keys()
    for name, item in repaired.items.items():
        old = before[name]
        assert right_answer(item) == keys[name]
        assert (item.question, item.media, item.group) == (old.question, old.media, old.group)
        assert len(set(item.options)) == len(old.options)
        assert item.group in repaired.pools[str(item.tags[OPTION_POOL])]
    for one in repaired.options:
        if one.right_there:
            assert one.new == keys[one.source]
        else:
            assert one.new in before[one.source].options
            assert one.new not in keys.values()
        if one.source in repaired.items:
            assert repaired.items[one.source].tags[OPTION_POOL] == repaired.items[one.item].tags[OPTION_POOL]
        else:
            assert one.source_group in repaired.pools[str(repaired.items[one.item].tags[OPTION_POOL])]
        assert one.new in repaired.items[one.item].options
        assert one.old in before[one.item].options
        assert one.old != keys[one.item]
        assert one.similarity == pytest.approx(alike(one.new, keys[one.item]), abs=6e-4)
        if one.source != one.item:  # its own published option is known to be wrong
            assert one.similarity <= settings.similar
            assert one.supported <= settings.supported
            assert one.gap_s is None or one.gap_s > 0
        assert one.state == ("as published" if one.new in before[one.item].options else TO_CONFIRM)
    widths = Counter(len(item.options) for item in repaired.items.values())
    for width, count in widths.items():
        letters = Counter(
            str(item.reference.answer)
            for item in repaired.items.values()
            if item.reference and len(item.options) == width
        )
        assert max(letters.values()) - min(letters.values()) <= 1 or count < width


def test_the_same_seed_gives_the_same_options_whatever_the_order() -> None:
    items = made(longest)
    settings = RepairSettings(rounds=5)
    first = repair_items(items, settings)
    assert first == repair_items(items[::-1], settings)
    assert first.items != repair_items(items, RepairSettings(rounds=5, seed=1)).items


def test_in_a_whole_block_every_rule_on_options_is_right_once() -> None:
    """Whatever a rule reads in the options: 1000 rules, each a random order of all texts."""
    size, rng = 48, generator(0, "rules")
    nothing_known = np.zeros((size, size))
    problem = Exchange([range(24), range(24, 48)], nothing_known, nothing_known > 0, np.zeros((1, size, size)), 4)
    options = exchange(problem, generator(1, "search"), rounds=2).options(4)
    assert Counter(source for some in options.values() for source in some) == dict.fromkeys(range(size), 4)
    for _ in range(1000):
        order = rng.permutation(size)
        hits = sum(max(some, key=lambda source: order[source]) == item for item, some in options.items())
        assert hits == size / 4


def test_spare_texts_are_right_nowhere_and_offered_as_often_as_the_others_of_their_block() -> None:
    """24 questions and 11 spare ones, four options: eight blocks of three questions and a spare one."""
    size, spare = 35, frozenset(range(24, 35))
    nothing_known = np.zeros((size, size))
    problem = Exchange([range(size)], nothing_known, nothing_known > 0, np.zeros((1, size, size)), 4, spare)
    options = exchange(problem, generator(1, "search"), rounds=3).options(4)
    assert options.keys() == set(range(24))
    assert all(len(set(some)) == 4 and some[0] == item for item, some in options.items())
    offered = Counter(source for some in options.values() for source in some)
    assert set(offered.values()) == {3}
    assert len(offered.keys() & spare) == 8
    rng, hits = generator(0, "rules"), 0
    for _ in range(2000):  # any rule on options: right in one of three, or in none where the spare text is chosen
        order = rng.permutation(size)
        hits += sum(max(some, key=lambda source: order[source]) == item for item, some in options.items())
    assert hits / 2000 / 24 == pytest.approx(0.25, abs=0.005)


def test_spare_texts_are_chosen_by_cost() -> None:
    """Of nine spare texts one costs nothing; the search finds it."""
    cost = np.ones((12, 12))
    cost[:, 7] = 0.0
    problem = Exchange([range(12)], cost, cost < 0, np.zeros((0, 12, 12)), 4, frozenset(range(3, 12)))
    (block,) = exchange(problem, generator(2, "search"), rounds=50).blocks
    assert set(block) == {0, 1, 2, 7}


def together_of(items: list[Item]) -> tuple[float, float]:
    pools = choice_of(items).pools
    assert pools is not None
    assert pools.together is not None
    return pools.together.together, pools.known.value or 0.0


def test_seeing_all_questions_at_once_gains_less_with_spare_texts() -> None:
    items = made(nothing)
    third = [item for number, item in enumerate(items) if number % 4 != 3]
    spare = [item for number, item in enumerate(items) if number % 4 == 3]
    alone = repair_items(third, RepairSettings(rounds=20, looks=1.0))
    lent = repair_items(third, RepairSettings(rounds=20, looks=1.0, lent=1), beside=[*items])
    more = repair_items(third, RepairSettings(rounds=20))
    _holds(third, more, RepairSettings())
    _holds(third, alone, RepairSettings())
    _holds(third, lent, RepairSettings(), spare)
    sources = {one.source for one in lent.options}
    assert sources & {item.id for item in spare}
    assert len(lent.items) == len(third)
    before, after = together_of(list(alone.items.values())), together_of(list(lent.items.values()))
    assert before[0] > after[0] + 0.01 > 0.61
    assert before[1] > 0.8  # by elimination, whoever knows the answers of all other groups
    assert after[1] < 0.75
    rights = Counter(right_answer(item) for item in lent.items.values())
    assert max(rights.values()) == 1
    published = [one for one in more.options if not one.right_there]  # here they look like right answers
    assert len({one.new for one in published}) >= 30
    least = together_of(list(more.items.values()))
    assert least[0] < after[0]
    assert least[1] < after[1]


def test_published_options_that_look_wrong_are_no_spare_texts() -> None:
    """Right options are longer than all others: a published one would be known by its length."""
    repaired = repair_items(made(longest), RepairSettings(rounds=5))
    assert all(one.right_there for one in repaired.options)


def test_what_looks_right_is_learned_from_other_groups() -> None:
    items = made(form)
    scores = looks_right(items)
    ahead = [
        own[item.options.index(right_answer(item))] - max(score for score in own)
        for item, own in zip(items, scores, strict=True)
    ]
    assert sum(gap == 0 for gap in ahead) > 0.95 * len(items)
    assert looks_right(items[:8]) == [[0.0] * 4] * 8  # two groups: nothing can be learned


def test_blocks_have_up_to_two_spare_texts() -> None:
    nothing_known = np.zeros((40, 40))
    spare = frozenset(range(12, 40))
    for lent, per_block in ((1, 3), (2, 2)):
        problem = Exchange([range(40)], nothing_known, nothing_known > 0, np.zeros((1, 40, 40)), 4, spare, lent)
        found = exchange(problem, generator(1, "search"), rounds=2)
        assert {sum(row not in spare for row in block) for block in found.blocks} == {per_block}
        assert all(len(set(some)) == 4 for some in found.options(4).values())


def test_invalid_questions_that_nobody_is_asked_lend_nothing() -> None:
    items = made(nothing)
    broken = items[0].model_copy(update={"id": "broken", "reference": Reference(answer="Z")})
    assert repair_items(items, RepairSettings(rounds=2), beside=[broken]) == repair_items(
        items, RepairSettings(rounds=2)
    )


def test_the_objective_of_a_block_by_hand() -> None:
    """Two options, one class of two questions: cost 3 and 5, and a cue that is right in the first question alone."""
    cost = np.array([[0.0, 3.0], [5.0, 0.0]])
    cues = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    found = exchange(Exchange([(0, 1)], cost, cost < 0, cues, 2), generator(0, "by hand"), rounds=1)
    assert found.cost == 4.0
    assert found.cues.tolist() == [[0.5, 0.5]]  # the right option is the lowest once and the highest once
    assert found.objective == 4.0  # even positions, and the gaps +1 and −1 make 0
    cues[0, 1] = [
        0.0,
        1.0,
    ]  # now the right option is the highest in both: spread 0.5, gap 1 each, so 2 standard deviations
    found = exchange(Exchange([(0, 1)], cost, cost < 0, cues, 2), generator(0, "by hand"), rounds=1)
    assert found.cues.tolist() == [[0.0, 1.0]]
    assert found.objective == pytest.approx(4.0 + 400 * (2 * 0.5**2 + (2 / 4) ** 2))


def test_overlapping_clips_and_paraphrases_never_serve() -> None:
    items = made(nothing)
    clip = items[0].media[0]
    for row in (1, 2, 3):  # four questions on one moment
        items[row] = items[row].model_copy(update={"media": (clip,)})
    at = "ABCD".index(str(items[5].reference.answer)) if items[5].reference else 0
    options = list(items[5].options)
    options[at] = right_answer(items[9]) + " again"
    items[5] = items[5].model_copy(update={"options": tuple(options)})
    repaired = repair_items(items, RepairSettings(rounds=20))
    _holds(items, repaired, RepairSettings())
    pairs = {(one.item, one.source) for one in repaired.options}
    assert not pairs & {(f"q0{one}", f"q0{other}") for one in range(4) for other in range(4)}
    assert not pairs & {("q05", "q09"), ("q09", "q05")}


def test_what_is_known_of_the_clip_never_serves() -> None:
    """The free response on the same moment says what another question's right option says."""
    items = made(nothing)
    told = items[0].model_copy(
        update={"id": "told", "options": (), "reference": Reference(answer=f"They {right_answer(items[30])}.")}
    )
    free = told.model_copy(update={"answer": FreeTextFormat()})
    repaired = repair_items(items, RepairSettings(rounds=20), beside=[free])
    assert ("q00", "q30") not in {(one.item, one.source) for one in repaired.options}
    _holds(items, repaired, RepairSettings())


def test_classes_are_kept_apart() -> None:
    items = [
        item.model_copy(update={"tags": {"type": f"t{number % 2}", "organ": f"o{number // 48}"}})
        for number, item in enumerate(made(nothing))
    ]
    repaired = repair_items(items, RepairSettings(rounds=3, same=("type", "organ")))
    by_id = repaired.items
    for one in repaired.options:
        assert {name: by_id[one.item].tags[name] for name in ("type", "organ")} == {
            name: by_id[one.source].tags[name] for name in ("type", "organ")
        }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda items: [item.model_copy(update={"tags": {"type": item.id}}) for item in items],
            "found 0 of 96 items that can be repaired (96 items: too few questions of its kind to exchange with)",
        ),
        (lambda items: [], "items: found no choice question with a reference, expected questions with options"),
        (
            lambda items: [items[0].model_copy(update={"reference": Reference(answer="E")}), *items[1:]],
            "item q00, reference: found 'E', expected one of A, B, C, D",
        ),
        (
            lambda items: [items[0].model_copy(update={"options": ("a", "b", "c", " A")}), *items[1:]],
            "item q00, options: found one option twice, expected different options",
        ),
        (
            lambda items: [
                item.model_copy(update={"reference": Reference(answer="A", accepted=("B",))}) for item in items
            ],
            "found 0 of 96 items that can be repaired (96 items: several right options)",
        ),
    ],
)
def test_what_cannot_be_repaired_is_refused(change: Callable[[list[Item]], list[Item]], message: str) -> None:
    with pytest.raises(InputError) as refused:
        repair_items(change(made(nothing)), RepairSettings(rounds=1, same=("type",)))
    assert message in str(refused.value)


def test_a_reader_that_cannot_write_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found options to replace, expected a benchmark that can be written again"):
        option_writer("focus", tmp_path)


def test_the_published_choices_can_no_longer_be_guessed(data: Path) -> None:
    """76.7 % for the shortest option before."""
    loaded = reader_of("rexsonovqa").load(data / "rexsonovqa")
    items = [item for item in loaded.counted() if item.options]
    settings = RepairSettings(same=("question_type", "category"))
    repaired, used = accepted_repair(items, settings, beside=loaded.items)
    counted = {item.id for item in items}
    _holds(items, repaired, used, [item for item in loaded.items if item.options and item.id not in counted])
    assert len(repaired.items) >= 0.9 * 249
    together, known = together_of(list(repaired.items.values()))
    assert together < 0.65  # 0.689 without spare texts, 0.664 with uncounted questions alone
    assert known < 0.55  # 0.796 and 0.606
    never = {one.new for one in repaired.options} - {right_answer(item) for item in repaired.items.values()}
    assert len(never) >= 0.4 * len(repaired.items)
    lent = [one for one in repaired.options if not one.right_there]
    assert all((one.state == TO_CONFIRM) == (one.source != one.item) for one in lent)
    after = choice_of(list(repaired.items.values()))
    assert after.selected is not None
    assert after.selected.covers_chance is True
    found = {one.name: one.accuracy.value or 0.0 for one in after.baselines}
    assert max(found.values()) <= 0.30
    assert {"nearest-in-characters-once", "logistic-features-once", "logistic-pairs-once"} <= found.keys()
    near = [one for one in repaired.options if one.gap_s is not None and one.gap_s < 30 and one.source != one.item]
    assert len(near) < 0.05 * len(repaired.options)
