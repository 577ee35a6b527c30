"""`score --repeats`: a judge is asked several times for each answer. The mean is the score, the single ones are kept, and
nothing is paid twice."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import Answer, Benchmark, InputError, Item, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.judges import RESOLVED, RUBRIC, UNRESOLVED
from proctor.results import results
from proctor.runs import Run, Store, check_store, decide, delete_runs, delete_scores, merge_stores, write_open
from proctor.runs.judge_work import add_judge_scores, judge_score_rows, mean_scores
from proctor.runs.store import Run as StoredRun
from tests.support.faulty_server import FaultyServer, Request

ANSWERS = {"q0": ("the liver", "the liver again"), "q1": ("a clip", "a clip"), "q2": ("a drain", "no drain")}
JUDGE = "three-level[openai:judge]"


def words(items: int = 3) -> Benchmark:
    asked = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question=f"What is seen in view {number}?",
            answer=FreeTextFormat(),
            reference=Reference(answer="the liver"),
        )
        for number in range(items)
    )
    return Benchmark("words", "Words", asked, (RUBRIC,), "rubric")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = str(tmp_path / "runs.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = Store(url)
    answered(opened)
    yield opened
    opened.close()


def answered(store: Store) -> Run:
    """Three questions, each answered twice."""
    store.add_benchmark(words())
    run = store.start_run("words", "mine", "text-only", {"repeats": 2})
    store.write(
        run,
        [
            (Answer(item_id=item, repetition=number, text=text, parsed=text), [])
            for item, both in ANSWERS.items()
            for number, text in enumerate(both)
        ],
    )
    return run


def verdict(score: int) -> str:
    kind = {2: "none", 1: "wrong_conclusion", 0: "both"}[score]
    return json.dumps({"explanation": "because", "error_type": kind, "score": score})


class Wavering:
    """A judge whose score is 2 when it is asked first, and after that goes down by the number of its repetition."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, request: Request) -> str:
        seed = request.body.get("seed")
        number = 0 if seed is None else int(seed)
        self.asked.append((request.texts[-1], number))
        return verdict((2, 0, 1, 1, 0)[number])


def judge(store: Store, server: FaultyServer, repeats: int = 1, **more: Any) -> None:
    asked = {"judge": "three-level", "model": "openai:judge", "base_url": server.url, "repeats": repeats, **more}
    proctor.score(store, "words", **asked)


def singles(store: Store, repetition: int = 0) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for row in judge_score_rows(store, store.runs("words")[0], scorer=JUDGE, repetition=repetition):
        if row.metric == "rubric":
            found.setdefault(row.item_id, {})[row.judge_repetition] = row.value
    return found


def scores(store: Store, repetition: int = 0) -> dict[str, float]:
    rows = store.score_rows(store.runs("words")[0], scorer=JUDGE, metric="rubric", repetition=repetition)
    return {row.item_id: row.value for row in rows}


def test_the_score_is_the_mean_and_the_single_ones_are_kept(store: Store) -> None:
    model = Wavering()
    with FaultyServer(model) as server:
        judge(store, server, 3)
        # "a clip" was answered twice: the same request, and so the same judgement, in each repetition of the judge.
        assert len(model.asked) == 5 * 3
        assert Counter(number for _, number in model.asked) == {0: 5, 1: 5, 2: 5}
        judge(store, server, 3)
        assert len(model.asked) == 15, "a second call asks nothing"
    for repetition in (0, 1):
        assert scores(store, repetition) == dict.fromkeys(ANSWERS, pytest.approx((2 + 0 + 1) / 3))
        assert singles(store, repetition) == {item: {0: 2.0, 1: 0.0, 2: 1.0} for item in ANSWERS}
    keys = {row.judgement_key for row in judge_score_rows(store, store.runs("words")[0], scorer=JUDGE)}
    assert len(keys) == 9, "each repetition has its own judgement"
    assert len(store.judgements(keys)) == 9
    assert list(check_store(store)) == []
    (row,) = [one for one in results(store, "words").rows if (one.metric, one.scorer) == ("rubric", JUDGE)]
    assert row.value == pytest.approx(1.0)


def test_more_judgements_are_asked_later_and_the_first_is_not_paid_again(store: Store) -> None:
    model = Wavering()
    with FaultyServer(model) as server:
        judge(store, server)
        assert (len(model.asked), scores(store)) == (5, dict.fromkeys(ANSWERS, 2.0))
        assert singles(store) == {}, "one judgement of each answer is a score as ever"
        judge(store, server, 2)
        assert (len(model.asked), scores(store)) == (10, dict.fromkeys(ANSWERS, 1.0))
        judge(store, server, 5)
        assert (len(model.asked), set(scores(store).values())) == (25, {0.8})
        judge(store, server)
        assert (len(model.asked), set(scores(store).values())) == (25, {0.8})
    assert store.card("words").scorers[JUDGE]["repeats"] == 5


def test_all_answers_are_judged_once_before_any_is_judged_twice(store: Store) -> None:
    model = Wavering()
    with FaultyServer(model) as server:
        judge(store, server, 3, limit=7, concurrency=1)
        assert [number for _, number in model.asked] == [0] * 5 + [1]
        assert scores(store, 1) == dict.fromkeys(ANSWERS, 2.0), "the mean over what is there"
        judge(store, server, 3)
    assert len(model.asked) == 15


def test_a_killed_pass_has_lost_no_paid_judgement(store: Store) -> None:
    """Judgements are on disk when they come; scores may be written later, and follow from them without a call."""
    model = Wavering()
    with FaultyServer(model) as server:
        judge(store, server, 3)
        with store.writing() as connection:
            connection.exec_driver_sql("delete from judge_scores where judge_repetition > 0")
            connection.exec_driver_sql("delete from scores")
        judge(store, server, 3)
        assert len(model.asked) == 15
    assert scores(store) == dict.fromkeys(ANSWERS, pytest.approx(1.0))


def test_a_repetition_without_a_verdict_is_missing_and_asked_again(store: Store) -> None:
    model, broken = Wavering(), [True]

    def sometimes(request: Request) -> str:
        if broken[0] and request.body.get("seed") == 1:
            model.asked.append(("", 1))
            return "no verdict at all"
        return model(request)

    with FaultyServer(sometimes) as server:
        judge(store, server, 2)
        assert scores(store) == dict.fromkeys(ANSWERS, 2.0), "of the repetition that came to a verdict"
        (state,) = {(row.value, row.label) for row in states(store)}
        assert state == (0.0, RESOLVED)
        broken[0] = False
        judge(store, server, 2)
    assert scores(store) == dict.fromkeys(ANSWERS, 1.0)


def states(store: Store) -> list[Score]:
    return store.score_rows(store.runs("words")[0], scorer=JUDGE, metric=UNRESOLVED.name)


def test_merged_stores_keep_what_is_behind_a_mean_and_deleting_leaves_nothing(store: Store, tmp_path: Path) -> None:
    with FaultyServer(Wavering()) as server:
        judge(store, server, 3)
    target = Store(tmp_path / "target.db")
    merge_stores(target, [store])
    assert singles(target, 1) == singles(store, 1)
    assert scores(target, 1) == scores(store, 1)
    merge_stores(target, [store])
    assert singles(target, 1) == singles(store, 1)
    delete_scores(target, "words", JUDGE)
    assert (scores(target), singles(target)) == ({}, {})
    delete_runs(store, store.runs("words"))
    with store.reading() as connection:
        assert connection.exec_driver_sql("select count(*) from judge_scores").scalar() == 0


def test_what_a_person_decided_stays(store: Store) -> None:
    run = store.runs("words")[0]
    decided = [("rubric", 1.0, "1"), (UNRESOLVED.name, 0.0, "decided by human:anna")]
    store.add_scores(
        run, [Score(item_id="q0", metric=m, value=v, label=label, scorer=JUDGE) for m, v, label in decided]
    )
    model = Wavering()
    with FaultyServer(model) as server:
        judge(store, server, 2)
    assert scores(store)["q0"] == 1.0
    assert all("view 0" not in text for text, _ in model.asked if "the liver again" not in text)
    add_judge_scores(store, [(run, Score(item_id="q0", metric="rubric", value=0.0, scorer=JUDGE), 0)])
    assert scores(store)["q0"] == 1.0


def test_an_open_answer_of_any_repetition_is_listed_and_decided_by_a_person(store: Store, tmp_path: Path) -> None:
    def sometimes(request: Request) -> str:
        return "no verdict" if "the liver again" in request.text or "no drain" in request.text else verdict(2)

    with FaultyServer(sometimes) as server:
        judge(store, server)
    out = tmp_path / "open.csv"
    assert write_open(store, "words", out) == 2
    with out.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [(row["item"], row["repetition"], row["answer"]) for row in rows] == [
        ("q0", "1", "the liver again"),
        ("q2", "1", "no drain"),
    ]
    rows[0] |= {"value": "1 wrong conclusion", "reason": "said twice"}
    with out.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    counts = decide(store, "words", out, by="anna", at="2026-08-01T10:00:00+00:00")
    assert (counts.answers, counts.left) == (1, 1)
    assert (scores(store, 1)["q0"], scores(store)["q0"]) == (1.0, 2.0)


def test_what_repetitions_of_a_judge_measure_is_said(store: Store) -> None:
    asked: dict[str, Any] = {"judge": "three-level", "model": "openai:judge", "settings": {"temperature": 0}}
    with FaultyServer(Wavering()) as server:
        found = proctor.score(store, "words", base_url=server.url, repeats=2, **asked)
        fewer = proctor.score(store, "words", base_url=server.url, **asked)
    assert any(note.startswith("openai:judge: temperature 0: repetitions measure the noise") for note in found.notes)
    assert f"{JUDGE} has judged answers up to 2 times: these judgements stay." in fewer.notes
    assert not any("temperature" in note for note in fewer.notes)


def one(metric: str, value: float, label: str = "") -> Score:
    return Score(item_id="q1", metric=metric, value=value, scorer="judge", label=label)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({0: [one("a", 1, "x")], 1: [one("a", 0, "x")]}, [("a", 0.5, "x")]),
        ({0: [one("a", 1, "x")], 1: [one("a", 0, "y")]}, [("a", 0.5, "")]),
        ({0: [one("a", 1), one("b", 2)], 4: [one("a", 0)]}, [("a", 0.5, ""), ("b", 2.0, "")]),
        (
            {0: [one("unresolved", 1, "tie")], 1: [one("unresolved", 1, "no verdict")]},
            [("unresolved", 1, "no verdict")],
        ),
        ({0: [one("unresolved", 1, "tie")], 1: [one("unresolved", 0, "resolved")]}, [("unresolved", 0, "resolved")]),
    ],
)
def test_means_by_hand(given: dict[int, list[Score]], expected: list[tuple[str, float, str]]) -> None:
    assert [(score.metric, score.value, score.label) for score in mean_scores(given)] == expected


def test_metrics_that_ask_no_model_are_not_repeated(store: Store) -> None:
    with pytest.raises(InputError, match=r"--repeats 2 is for judges that ask a model. Leave it out"):
        proctor.score(store, "words", metrics="rouge-l", repeats=2)
    assert isinstance(store.runs("words")[0], StoredRun)
