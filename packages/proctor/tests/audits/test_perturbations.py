"""Changed answers: what is changed, by hand; how far scores move, by arithmetic; and planted scorers that are found out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import proctor
from proctor import ConfigurationError
from proctor.audits import PERTURBATIONS, Material, ProbedAnswer, Sensitivity
from proctor.audits.perturbations import wordings
from proctor.core import (
    Answer,
    Benchmark,
    Dimension,
    InputError,
    Item,
    RatingScheme,
    RecordedAnswers,
    Reference,
    Reliability,
    UsageError,
    generator,
)
from proctor.core.formats import FreeTextFormat
from proctor.runs import AnswersOf, Store, import_systems
from proctor.stats import Resampling
from tests.support.faulty_server import FaultyServer, Request
from tests.support.program import proctor as shell

EN = "It is eczema. Use a steroid cream 2 times a day for 2 weeks. It is not contagious."
ZH = "这是湿疹。建议外用激素软膏，每日两次，连用2周。不需要手术。"


def item(
    number: int, language: str = "en", references: Sequence[str] = ("Eczema.", "Dermatitis, use a cream.")
) -> Item:
    return Item(
        id=f"q{number}/{language}",
        group=f"g{number}",
        question="What is it?",
        answer=FreeTextFormat(),
        reference=Reference(answer=references[0], accepted=tuple(references[1:])),
        tags={"language": language},
    )


def changed(name: str, text: str, language: str = "en", **more: Any) -> str | None:
    given = {"item": item(1, language), "other": "", "translated": "", "rng": generator(0, name), **more}
    found = PERTURBATIONS[name].of(
        Material(text=text, language=language, **given), Answer(item_id=given["item"].id, text=text, parsed=text)
    )
    return None if found is None else found[1].text


def test_statements_are_negated_and_negations_taken_away() -> None:
    assert changed("negated-within", EN) == (
        "It is not eczema. Do not use a steroid cream 2 times a day for 2 weeks. It is contagious."
    )
    assert changed("negated-within", ZH, "zh") == "这不是湿疹。不建议外用激素软膏，每日两次，连用2周。需要手术。"
    assert changed("negated-within", "Eczema.") is None  # no statement that could be negated


def test_a_dose_is_tenfold_and_other_numbers_stay() -> None:
    assert changed("wrong-dose", "Take 0.5 mg twice daily, by 3 doctors, 2-3 weeks; grade 2.") == (
        "Take 5 mg twenty times daily, by 3 doctors, 2-30 weeks; grade 2."
    )
    assert changed("wrong-dose", ZH, "zh") == "这是湿疹。建议外用激素软膏，每日二十次，连用20周。不需要手术。"
    assert changed("wrong-dose", "See a doctor.") is None


def test_a_wrong_diagnosis_is_none_that_the_case_speaks_of() -> None:
    terms = set(wordings()["en"].diagnoses)
    for draw in range(40):
        text = changed("wrong-diagnosis", "Eczema, not psoriasis. Eczema!", rng=generator(draw, "d"))
        assert text is not None
        first, second = text.removesuffix("!").split(". ")[0].split(", not "), text.removesuffix("!").split(". ")[1]
        assert first[0] == second  # one diagnosis stays one
        assert {first[0], first[1]} <= terms - {"eczema", "psoriasis", "dermatitis"}  # the reference's neither
    assert changed("wrong-diagnosis", "Wartburg is a castle.") is None  # whole words
    assert "湿疹" not in (changed("wrong-diagnosis", ZH, "zh") or "湿疹")


@pytest.mark.parametrize(("language", "text"), [("en", EN), ("zh", ZH)])
def test_every_wording_keeps_the_answer_whole(language: str, text: str) -> None:
    for name in ("negated", "retracted", "boilerplate", "order-to-judge", "doubled"):
        found = changed(name, text, language)
        assert found is not None
        assert text in found
        assert len(found) > len(text)
    assert sorted(changed("shuffled", text, language) or "") == sorted(text)
    assert changed("negated", text, "fr") is None  # no wording in this language


def test_references_are_turned_with_what_is_known_of_them() -> None:
    known = item(1).model_copy(
        update={
            "reference": Reference(
                answer="a", accepted=("b", "c"), reliability=tuple(Reliability(frequency=k) for k in (3, 2, 1))
            )
        }
    )
    material = Material(known, "x", "en", "", "", generator(0))
    turned, _ = PERTURBATIONS["references-reversed"].of(material, Answer(item_id="q1/en")) or (None, None)
    assert turned is not None
    assert turned.reference is not None
    assert (turned.reference.answer, turned.reference.accepted) == ("c", ("b", "a"))
    assert [one.frequency for one in turned.reference.reliability] == [1, 2, 3]
    alone = Material(item(1, references=["only"]), "x", "en", "", "", generator(0))
    assert PERTURBATIONS["references-reversed"].of(alone, Answer(item_id="q1/en")) is None


def probed(
    changes: Sequence[float | None], name: str = "negated", scores: Sequence[float] | None = None
) -> Sensitivity:
    given = scores or [float(k % 5) for k in range(len(changes))]
    answers = [
        ProbedAnswer(
            f"q{k}", "s", f"g{k}", "en", {"m": given[k]}, {} if change is None else {name: {"m": given[k] + change}}
        )
        for k, change in enumerate(changes)
    ]
    return Sensitivity("planted", tuple(answers), (name,), Resampling(draws=400))


def test_a_shift_is_in_deviations_of_all_answers_as_they_stand() -> None:
    found, by_dimension = probed([-1.0, None, -2.0, 0.0, -1.0, None, -2.0, -1.0]).shifts
    spread = np.std([0, 1, 2, 3, 4, 0, 1, 2])  # of all eight, changed or not
    assert found.shift.value == pytest.approx(-7 / 6 / spread)
    assert found.moved.value == pytest.approx(7 / 6 / spread)
    assert found.fell.value == pytest.approx(5 / 6)
    assert (found.answers, found.groups, found.dimension) == (6, 6, "")
    assert by_dimension.dimension == "m"
    assert by_dimension.shift == found.shift


def test_findings_say_no_more_than_the_intervals_allow() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, 40)

    def finding(changes: Any, name: str = "negated") -> str:
        return probed(list(changes), name).shifts[0].finding

    assert finding(-1.0 + noise) == "as expected"
    assert finding(noise) == "can't tell a negation"
    assert finding(np.zeros(40)) == "can't tell a negation"
    assert finding(rng.normal(-0.2, 1.5, 12)) == "unclear"
    assert finding(np.full(4, -1.0) + noise[:4]) == "unclear"  # four groups say nothing
    assert finding(1.0 + noise, "boilerplate") == "rewards boilerplate"
    assert finding(noise, "boilerplate") == "as expected"
    assert finding(rng.choice([-1.0, 1.0], 40), "references-reversed") == "depends on the references' order"
    assert finding(noise, "references-reversed") == "as expected"
    assert finding(noise, "reference-copied") == "does not prefer a reference"
    assert finding(noise, "other-language") == ""


def test_a_scorer_that_says_the_same_of_everything_has_no_shift() -> None:
    (found,) = probed([0.0] * 6, scores=[1.0] * 6).shifts
    assert (found.shift.value, found.reason, found.finding) == (None, "all scores are the same", "")


SCHEME = RatingScheme(
    dimensions=(Dimension("good", (0.0, 0.5, 1.0)), Dimension("bad", (0.0, 1.0), lower_is_better=True))
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two systems' answers to eight cases, rated on two dimensions, the second better low."""
    items = tuple(item(number) for number in range(8))
    opened = Store(tmp_path / "runs.db")
    benchmark = Benchmark(
        name="cases", title="Cases", items=items, metrics=SCHEME.metrics, rating=SCHEME, headline="good"
    )
    texts = {system: [f"It is eczema, {system} says in case {k}. " + "Rest. " * k for k in range(8)] for system in "ab"}
    recorded = [
        RecordedAnswers(
            tuple(Answer(item_id=one.id, text=text, parsed=text) for one, text in zip(items, own, strict=True)),
            system=system,
        )
        for system, own in texts.items()
    ]
    asyncio.run(import_systems(opened, benchmark, recorded, condition="video"))
    return opened


def finds(store: Store, function: Callable[..., float], **options: Any) -> dict[str, str]:
    table = proctor.perturb(store, scorer=proctor.metric(low=0, high=1000)(function), draws=200, **options)
    return {row["perturbation"]: row["finding"] for row in table.rows if not row["dimension"]}


def test_planted_scorers_are_found_out(store: Store) -> None:
    def blind(text: str) -> float:
        return float(len(text))

    def sound(text: str) -> float:
        wrong = any(one in text for one in ("not true", "none of the above", "is not"))
        case = re.search(r"case (\d)", text)
        return 0.0 if wrong or case is None else 50.0 + float(case[1])

    long = finds(store, blind)
    assert long["negated"] == "can't tell a negation"
    assert long["doubled"] == "rewards length"
    assert long["boilerplate"] == "rewards boilerplate"
    assert long["asked-again"] == long["references-reversed"] == "as expected"
    good = finds(store, sound)
    assert [good[name] for name in ("negated", "retracted", "negated-within")] == ["as expected"] * 3
    assert good["doubled"] != "rewards length"


def test_a_metric_on_text_rates_every_dimension_and_nothing_is_written(store: Store) -> None:
    before = store.scorers("cases")
    table = proctor.perturb(store, scorer="rouge-1-mean", draws=200, answers=5)
    rows = [row for row in table.rows if row["perturbation"] == "reference-copied"]
    assert [row["dimension"] for row in rows] == ["", "good", "bad"]
    assert all(row["shift"] > 1 for row in rows)  # above 0 is better, also where lower is better
    assert {row["answers"] for row in rows} == {5}
    assert store.scorers("cases") == before
    assert table.rows == proctor.perturb(store, scorer="rouge-1-mean", draws=200, answers=5).rows


class Score(BaseModel):
    """How good an answer is."""

    value: int


@proctor.judge(low=0, high=9)
async def scores(answer: str, ask: Any) -> float:
    """How good an answer is."""
    return float((await ask(f"How good?\n{answer}", Score)).value)


def test_a_second_asking_is_a_new_one_and_a_second_audit_asks_nobody(store: Store) -> None:
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(request.text)
        return json.dumps({"value": (len(request.text) + 3 * asked[:-1].count(request.text)) % 10})

    options: Any = {"scorer": scores, "model": "m", "draws": 200, "perturbations": ["asked-again", "negated"]}
    with FaultyServer(reply) as server:
        first = proctor.perturb(store, base_url=server.url, **options)
        calls = server.count
        second = proctor.perturb(store, base_url=server.url, **options)
        assert server.count == calls == 3 * 16  # as it stands, once more, negated
    assert first.rows == second.rows
    again = next(row for row in first.rows if row["perturbation"] == "asked-again")
    assert again["moved"] > 0.5
    assert again["finding"] == "does not repeat itself"


def test_a_verdict_that_does_not_come_is_missing_and_never_a_number(store: Store) -> None:
    def reply(request: Request) -> str:
        return "I refuse." if "not true" in request.text else json.dumps({"value": len(request.text) % 10})

    with FaultyServer(reply) as server:
        table = proctor.perturb(
            store,
            scorer=scores,
            model="m",
            base_url=server.url,
            retries=0,
            perturbations=["negated", "doubled"],
            draws=200,
        )
    rows = {row["perturbation"]: row for row in table.rows if not row["dimension"]}
    assert (rows["negated"]["shift"], rows["negated"]["answers"], rows["negated"]["missing"]) == (None, 0, 16)
    assert "no verdict" in rows["negated"]["reason"]
    assert rows["doubled"]["answers"] == 16


def test_the_command_prints_the_table_and_says_what_a_scorer_can_not_tell(store: Store, tmp_path: Path) -> None:
    at = tmp_path / "runs.db"
    made = shell("judge", "perturb", "cases", "--scorer", "rouge-1-best", "--store", at, "--perturbation", "shuffled")
    assert made.returncode == 0, made.stderr
    assert "can't tell shuffled words" in made.stdout
    assert "rouge-1-best, English: can't tell shuffled words." in made.stderr
    rows = json.loads(
        shell("judge", "perturb", "cases", "--scorer", "rouge-1-best", "--store", at, "--format", "json").stdout
    )
    assert {row["perturbation"] for row in rows} == set(PERTURBATIONS)
    refused = shell("judge", "perturb", "cases", "--scorer", "rouge-1-best", "--store", at, "--against", "x")
    assert "No such option --against." in refused.stderr


def test_what_can_not_be_asked_is_one_line(store: Store) -> None:
    with pytest.raises(UsageError, match="--scorer"):
        proctor.perturb(store)
    with pytest.raises(UsageError, match="--perturbation 'negate' is unknown: choose"):
        proctor.perturb(store, scorer="rouge-l-mean", perturbations="negate")
    with pytest.raises((InputError, ConfigurationError), match="rouge-9"):
        proctor.perturb(store, scorer="rouge-9")


def repeated(folder: Path, texts: Sequence[Sequence[str]]) -> Store:
    """One system's answers to as many cases as there are rows, a group each; a text for each repetition ("" for none)."""
    folder.mkdir()
    items = tuple(item(number) for number in range(len(texts)))
    opened = Store(folder / "runs.db")
    opened.add_benchmark(
        Benchmark(name="cases", title="Cases", items=items, metrics=SCHEME.metrics, rating=SCHEME, headline="good")
    )
    times = len(texts[0])
    run = opened.start_run("cases", "a", "video", {"repeats": times} if times > 1 else {})
    for number in range(times):
        given = [(one, own[number]) for one, own in zip(items, texts, strict=True) if own[number]]
        opened.write(
            run, [(Answer(item_id=one.id, repetition=number, text=text, parsed=text), []) for one, text in given]
        )
    return opened


def drawn(store: Store, most: int) -> list[tuple[str, int]]:
    answers = AnswersOf(store, store.runs("cases"))
    return [(one.item.group, one.answer.repetition) for one in answers.draw(most, 0)]


def test_every_repetition_can_be_drawn_and_none_before_the_other_cases(tmp_path: Path) -> None:
    texts = [[f"It is eczema in case {k}, said {n}." for n in range(3)] for k in range(8)]
    once, thrice = repeated(tmp_path / "1", [row[:1] for row in texts]), repeated(tmp_path / "3", texts)
    assert drawn(thrice, 5) == drawn(once, 5)  # who asks for few gets what was drawn before there were repetitions
    assert drawn(thrice, 8) == drawn(once, 8)
    found = drawn(thrice, 16)
    assert len({group for group, _ in found[:8]}) == len({group for group, _ in found[8:]}) == 8
    assert all(number > 0 for _, number in found[8:])
    assert sorted(drawn(thrice, 0)) == [(f"g{k}", number) for k in range(8) for number in range(3)]
    late = repeated(tmp_path / "late", [["", "It is eczema."], ["It is mumps.", "It is measles."]])
    assert sorted(drawn(late, 2)) == [("g0", 1), ("g1", 0)]


def test_the_same_answers_three_times_are_no_more_evidence(tmp_path: Path) -> None:
    """Intervals resample groups: repetitions add answers, and neither cases nor certainty."""
    texts = [["It is eczema. " + "Use a cream. " * (k + 1)] for k in range(8)]
    once, thrice = repeated(tmp_path / "1", texts), repeated(tmp_path / "3", [row * 3 for row in texts])

    def length(text: str) -> float:
        return float(min(len(text), 1000))

    scorer = proctor.metric(low=0, high=1000)(length)
    options: Any = {"scorer": scorer, "draws": 300, "perturbations": ["doubled", "retracted"], "answers": 0}
    one, three = (proctor.perturb(store, **options).rows for store in (once, thrice))
    assert one
    for first, second in zip(one, three, strict=True):
        assert (second["answers"], second["groups"]) == (3 * first["answers"], first["groups"])
        for name, kept in first.items():
            if name != "answers":
                assert second[name] == (pytest.approx(kept, abs=1e-9) if isinstance(kept, float) else kept)


def test_repetitions_are_scored_apart(tmp_path: Path) -> None:
    """By hand: each case has an answer of one word, and one of two. Lengths in words are 1 and 2, so their deviation is
    1/2; doubled they are 2 and 4, so that the mean change is 3/2: a shift of 3."""
    texts = [["Eczema", "Eczema indeed"] for _ in range(6)]

    def words(text: str) -> float:
        return float(len(text.split()))

    scorer = proctor.metric(low=0, high=1000)(words)
    store = repeated(tmp_path / "2", texts)
    table = proctor.perturb(store, scorer=scorer, draws=200, perturbations=["doubled"], answers=0)
    row = next(one for one in table.rows if not one["dimension"])
    assert (row["answers"], row["groups"]) == (12, 6)
    assert row["shift"] == pytest.approx(3.0)
