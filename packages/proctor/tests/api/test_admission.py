"""What a package brings in is refused where it enters: one line with the package, the location, what was found and the cure,
before anything is stored, and alike for functions and classes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

import proctor
from proctor.core import Answer, Item, RecordedAnswers, Reference, Score
from proctor.core.formats import BinaryFormat, ChoiceFormat, ClassesFormat, CountFormat, OrderingFormat
from proctor.metrics import code_scorers
from proctor.runs import Store, import_answers, import_systems, schema
from tests.support.broken_package import FIELDS, GOOD, HEAD, JUDGE, READER, SYSTEM, Offer, offering, refusal
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    yield from offering(tmp_path / "site", monkeypatch)


@pytest.fixture(autouse=True)
def _site(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()


# -- systems

SYSTEMS: dict[str, tuple[str, str]] = {
    "a text from a class": (
        SYSTEM.replace('return Answer(item_id=item.id, text="yes")', 'return "yes"'),
        "mine of brk: `answer` returned str, expected an Answer: Answer(item_id=item.id, text=…)",
    ),
    "a value of no format": (
        SYSTEM.replace('text="yes"', 'text="yes", parsed="yes"'),
        "mine of brk, item 'room-1/q1': `parsed` is 'yes', expected true or false (or None: the text is read)",
    ),
    "a plain method": (
        SYSTEM.replace("async def answer", "def answer"),
        "mine of brk: found a plain function `answer`, expected `async def answer`",
    ),
    "settings of a class": (
        SYSTEM.replace('"mine", {}', '"mine", {"files": [1, {"weights": __import__("pathlib").Path("w")}]}'),
        (
            "mine of brk: settings['files'][1]['weights'] is PosixPath, expected a text, a number, true or false, None, a "
            "list or a dict with texts as keys"
        ),
    ),
    "settings of a function": (
        '@proctor.system(name="mine", settings={"words": {"a", "b"}})\ndef S(question): return "yes"\n',
        (
            "mine of brk: settings['words'] is set, expected a text, a number, true or false, None, a list or a dict with "
            "texts as keys"
        ),
    ),
    "settings that are no dict": (SYSTEM.replace('"mine", {}', '"mine", None'), "mine of brk: `settings` is NoneType"),
    "a setting that is no number": (
        SYSTEM.replace('"mine", {}', '"mine", {"t": float("nan")}'),
        "mine of brk: settings['t'] is nan, expected a text",
    ),
    "the name of a class": (
        SYSTEM.replace('"mine"', '"majority"'),
        "the system 'mine' of brk (brk.m:S): found the name 'majority', expected 'mine', as its entry point",
    ),
    "the name of a function": (
        '@proctor.system\ndef S(question): return "yes"\n',
        "the system 'mine' of brk (brk.m:S): found the name 'S', expected 'mine', as its entry point",
    ),
    "a longer name that is another's": (
        SYSTEM.replace('"mine"', '"mine-2"'),
        "the system 'mine' of brk (brk.m:S): found the name 'mine-2', expected 'mine', as its entry point",
    ),
    "a format that does not exist": (
        '@proctor.system(name="mine", formats=["freetext"])\ndef S(question): return "yes"\n',
        "the system 'mine' of brk (brk.m:S): mine: found the format 'freetext', expected one of choice, ordering, ",
    ),
    "an option that does not exist": (
        '@proctor.system(name="mine", format=["binary"])\ndef S(question): return "yes"\n',
        "the system 'mine' of brk (brk.m:S) can't be loaded: TypeError: system() got an unexpected keyword argument",
    ),
}


@pytest.mark.parametrize("case", SYSTEMS)
def test_a_system_is_refused_before_anything_is_stored(offer: Offer, tmp_path: Path, case: str) -> None:
    code, said = SYSTEMS[case]
    offer({"m": HEAD + code}, {"systems.mine": "brk.m:S", "systems.mine-2": "brk.m:T"})
    store = tmp_path / "s.db"
    told = refusal(lambda: proctor.run(lamps(), "mine", conditions="text-only", store=store, baselines=False))
    assert told.startswith(said)
    assert not store.exists() or all(not Store(store).answers(run) for run in Store(store).runs("lamps"))


def test_a_system_may_go_on_after_its_name_and_none_takes_that_of_a_baseline(offer: Offer, tmp_path: Path) -> None:
    offer({"m": HEAD + SYSTEM.replace('"mine"', '"mine[two steps]"')}, {"systems.mine": "brk.m:S"})
    run = proctor.run(lamps(), "mine", conditions="text-only", store=":memory:", baselines=False)
    assert run.systems == ("mine[two steps]",)
    said = (
        "'majority' of {} has the name of Proctor's own system, and results would stand in its row. Give it another name "
        "(name=, or --name)."
    )

    def majority(question: str) -> str:
        return "yes"

    assert refusal(lambda: proctor.run(lamps(), majority, store=":memory:")) == said.format("test_admission.py")
    file = tmp_path / "own.py"
    file.write_text(HEAD + SYSTEM.replace('"mine"', '"majority"'), encoding="utf-8")
    assert refusal(lambda: proctor.run(lamps(), f"{file}:S", store=":memory:")) == said.format("own.py")
    named = "--name 'random' is the name of Proctor's own system. Choose another."
    assert refusal(lambda: proctor.run(lamps(), lambda question: "yes", name="random", store=":memory:")) == named


# -- scores

SCORES: dict[str, tuple[str, str]] = {
    "by code": (
        'return [Score(item_id=item.id, metric="tone", value=1.0)]',
        "found a score by 'code', expected one by 'mine[judge]': Score(…, scorer=self.name)",
    ),
    "accuracy by code": (
        'return [Score(item_id=item.id, metric="accuracy", value=1.0)]',
        "found a score by 'code', expected one by 'mine[judge]'",
    ),
    "a metric that is not declared": (
        f"return [{GOOD.replace('tone', 'tune')}]",
        "found a score of the metric 'tune', expected one of tone; did you mean 'tone'? (`metrics` declares them)",
    ),
    "another item": (
        f"return [{GOOD.replace('item.id', repr('room-1/q3'))}]",
        "found a score of item 'room-1/q3', expected one of item 'room-1/q1'",
    ),
    "out of range": (f"return [{GOOD.replace('1.0', '5')}]", "found tone 5, expected 0 to 1 (or declare low and high)"),
    "NaN": (f"return [{GOOD.replace('1.0', 'float(chr(110)+chr(97)+chr(110))')}]", "found value nan, expected "),
    "twice": (f"return [{GOOD}, {GOOD}]", "found a second score of the metric 'tone', expected one"),
    "one score": (f"return {GOOD}", "found Score, expected a list of Score"),
    "numbers": ("return [1.0]", "found float in the list of scores, expected a Score"),
    "an exception": ("raise ValueError('no tone')", "ValueError: no tone (m.py, line "),
}


@pytest.mark.parametrize("case", SCORES)
def test_a_score_of_a_judge_is_refused_and_what_was_paid_stays(offer: Offer, tmp_path: Path, case: str) -> None:
    body, said = SCORES[case]
    offer({"m": HEAD + JUDGE.format(body=body)}, {"judges.mine": "brk.m:J"})
    store = tmp_path / "s.db"
    proctor.run(lamps(free_text=True), lambda question: "yes", name="y", conditions="text-only", store=store)
    opened = Store(store)
    before = {run.system: sorted(map(str, opened.score_rows(run))) for run in opened.runs("lamps")}
    with FaultyServer('{"tone": 1}') as server:
        told = refusal(
            lambda: proctor.score(store, judge="mine", model="judge", base_url=server.url, systems="y", concurrency=1)
        )
    assert told.startswith(f"mine[judge] of brk, item 'room-1/q1': {said}")
    assert {run.system: sorted(map(str, opened.score_rows(run))) for run in opened.runs("lamps")} == before
    assert server.count > 0
    with opened.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(schema.judgements)) == server.count


METRICS: dict[str, tuple[str, str]] = {
    "an unknown option": (
        "@proctor.metric(format=['binary'])\ndef mine(text): return True\n",
        (
            "mine: found the option 'format', expected one of name, label, low, high, higher_is_better, percent, chance, "
            "formats; did you mean 'formats'?"
        ),
    ),
    "an option misspelt": (
        "@proctor.metric(higher_is_beter=False)\ndef mine(text): return True\n",
        (
            "mine: found the option 'higher_is_beter', expected one of name, label, low, high, higher_is_better, percent, "
            "chance, formats; did you mean 'higher_is_better'?"
        ),
    ),
    "an option of a judge": (
        "@proctor.judge(metric=['a'])\ndef mine(ask): return True\n",
        (
            "mine: found the option 'metric', expected one of name, label, low, high, higher_is_better, percent, chance, "
            "formats, metrics, prompt; did you mean 'metrics'?"
        ),
    ),
    "a metric of a judge": (
        "@proctor.judge(metrics=['a'])\ndef mine(ask): return True\n",
        "mine: found the metric 'a', expected a Metric",
    ),
    "a format": (
        "@proctor.metric(formats=['freetext'])\ndef mine(text): return True\n",
        "mine, metric 'mine': found the format 'freetext', expected one of choice, ",
    ),
    "bounds": (
        "@proctor.metric(low=1, high=0)\ndef mine(text): return True\n",
        "mine, metric 'mine': found low=1 and high=0, expected low < high",
    ),
    "chance": (
        "@proctor.metric(chance=25)\ndef mine(text): return True\n",
        "mine, metric 'mine': found chance=25, expected a number from 0 to 1",
    ),
}
SCORER = """class mine:
    name = "mine"
    metrics = (Metric("mine", "Mine"),)
    def applies(self, item): return True
    async def score(self, item, answer): return [Score(item_id=item.id, metric="mine", value=1, scorer="mine")]
"""
SCORERS: dict[str, tuple[str, str]] = {
    "a format": (
        SCORER.replace('"Mine")', '"Mine", formats=("freetext",))'),
        "mine of brk, metric 'mine': found the format 'freetext', expected one of choice, ",
    ),
    "bounds": (
        SCORER.replace('"Mine")', '"Mine", low=0, high=float("inf"))'),
        "mine of brk, metric 'mine': found low=0 and high=inf, expected low < high",
    ),
    "another name": (
        SCORER.replace('name = "mine"', 'name = "code"'),
        "the metric 'mine' of brk (brk.m:mine): found the name 'code', expected 'mine', as its entry point",
    ),
    "the name of a function": (
        "@proctor.metric\ndef other(text): return True\nmine = other\n",
        "the metric 'mine' of brk (brk.m:mine): found the name 'other', expected 'mine', as its entry point",
    ),
    "a plain score": (
        SCORER.replace("async def score", "def score"),
        "mine of brk, item 'room-1/q1': found a plain function `score`, expected `async def score`",
    ),
    "no metric": (SCORER.replace('(Metric("mine", "Mine"),)', '("mine",)'), "mine of brk: found the metric 'mine'"),
}


@pytest.mark.parametrize("case", METRICS)
def test_an_option_of_a_decorator_is_refused_when_it_is_loaded(offer: Offer, case: str) -> None:
    code, said = METRICS[case]
    offer({"m": HEAD + code}, {"scorers.mine": "brk.m:mine"})
    run = proctor.run(lamps(), lambda question: "yes", name="y", conditions="text-only", store=":memory:")
    told = refusal(lambda: run.score(metrics="mine"))
    assert told.startswith(f"the metric 'mine' of brk (brk.m:mine): {said}")


@pytest.mark.parametrize("case", SCORERS)
def test_a_scorer_is_refused_before_it_scores(offer: Offer, case: str) -> None:
    code, said = SCORERS[case]
    offer({"m": HEAD + code}, {"scorers.mine": "brk.m:mine"})
    run = proctor.run(lamps(), lambda question: "yes", name="y", conditions="text-only", store=":memory:")
    assert refusal(lambda: run.score(metrics="mine")).startswith(said)
    assert {row["metric"] for row in run.results()} == {"accuracy"}


def test_a_scorer_given_from_python_is_no_other(offer: Offer) -> None:
    class Code:
        name = "code"
        metrics = (proctor.ACCURACY,)

        def applies(self, item: Item) -> bool:
            return True

        async def score(self, item: Item, answer: Answer) -> list[Score]:
            return [Score(item_id=item.id, metric="accuracy", value=1.0)]

    run = proctor.run(lamps(), lambda question: "yes", name="y", conditions="text-only", store=":memory:")
    said = "code of test_admission.py: found the name 'code', which belongs to Proctor, expected a name of its own"
    assert refusal(lambda: run.score(metrics=Code())) == said


def test_what_a_function_of_a_package_returns_is_told_with_its_package(offer: Offer) -> None:
    offer({"m": HEAD + "@proctor.metric\ndef mine(text): return {'a': 1}\n"}, {"scorers.mine": "brk.m:mine"})
    run = proctor.run(lamps(), lambda question: "yes", name="y", conditions="text-only", store=":memory:")
    said = "brk: mine, item 'room-1/q1': found dict, expected a number"
    assert refusal(lambda: run.score(metrics="mine")) == said


# -- benchmarks

CHOICE = {"answer": ChoiceFormat(), "options": ("spleen", "liver")}
REFERENCES: list[tuple[dict[str, Any], Any, str]] = [
    (CHOICE, "liver", "field 'reference': found 'liver', expected one of A, B"),
    (CHOICE, "H", "field 'reference': found 'H', expected one of A, B"),
    (CHOICE, 1, "field 'reference': found 1, expected one of A, B"),
    ({"answer": BinaryFormat()}, "yes", "field 'reference': found 'yes', expected true or false"),
    ({"answer": BinaryFormat()}, 1, "field 'reference': found 1, expected true or false"),
    ({"answer": CountFormat()}, "3", "field 'reference': found '3', expected "),
    ({"answer": OrderingFormat(labels=("1", "2"))}, [2, 1], "field 'reference': found [2, 1], expected ['2', '1']"),
    (
        {"answer": ClassesFormat(classes=("clip", "mesh"))},
        "clip",
        "field 'reference': found 'clip', expected a list out",
    ),
    ({"answer": ClassesFormat(classes=("clip", "mesh"))}, ["mop"], "field 'reference': found ['mop'], expected a list"),
]


def asked(answer: Any, fields: dict[str, Any], **more: Any) -> Item:
    return Item(id="q1", group="v1", question="Which?", reference=Reference(answer=answer, **more), **fields)


@pytest.mark.parametrize(("fields", "answer", "said"), REFERENCES)
def test_a_reference_is_a_value_of_its_format(fields: dict[str, Any], answer: Any, said: str) -> None:
    given = replace(lamps(), items=(asked(answer, fields),), facets=(), buckets=())
    told = refusal(lambda: proctor.run(given, "random", store=":memory:"))
    assert told.startswith(f"the benchmark 'lamps': item 'q1', {said}")


def test_every_accepted_answer_is_a_value_of_its_format() -> None:
    given = replace(lamps(), items=(asked("A", CHOICE, accepted=("B", "liver")),), facets=(), buckets=())
    said = "the benchmark 'lamps': item 'q1', field 'accepted': found 'liver', expected one of A, B"
    assert refusal(lambda: proctor.run(given, "random", store=":memory:")) == said


DECLARED: dict[str, tuple[dict[str, Any], str]] = {
    "reference": ({"reference": "liver"}, "item 'q1', field 'reference': found 'liver', expected one of A, B"),
    "headline": (
        {"fields": FIELDS.replace('"accuracy"', '"acuracy"')},
        "field 'headline': found 'acuracy', expected one of accuracy; did you mean 'accuracy'?",
    ),
    "facet": (
        {"fields": FIELDS + ', facets=("fase",)'},
        "field 'facets': found 'fase', expected one of phase; did you mean 'phase'?",
    ),
    "bucket": (
        {"fields": FIELDS + ', buckets=("fase",)'},
        "field 'buckets': found 'fase', expected one of phase; did you mean 'phase'?",
    ),
    "condition": (
        {"fields": FIELDS.replace("text-only", "text-onli")},
        "field 'conditions': found 'text-onli', expected one of ",
    ),
    "judge": ({"judge": "three-levl"}, "field 'judge': found 'three-levl', expected one of "),
    "name": (
        {"fields": FIELDS.replace('"b"', '"focus"')},
        "found a benchmark called 'focus', expected 'b', as its reader",
    ),
    "metric twice": (
        {"fields": FIELDS.replace("(ACCURACY,)", "(ACCURACY, ACCURACY)")},
        "field 'metrics': found 'accuracy' twice, expected each metric once",
    ),
    "metric": (
        {"fields": FIELDS.replace("(ACCURACY,)", '(ACCURACY, Metric("tone", "Tone"))')},
        "field 'metrics': found 'tone', which nothing gives, expected a metric with a scorer (`scorers`), or a judge",
    ),
}


@pytest.mark.parametrize("case", DECLARED)
def test_what_a_benchmark_declares_exists(offer: Offer, tmp_path: Path, case: str) -> None:
    given, said = DECLARED[case]
    values = {"judge": None, "reference": "A", "fields": FIELDS} | given
    offer({"m": HEAD + READER.format(**values)}, {"benchmarks.b": "brk.m:READER"})
    assert refusal(lambda: proctor.load("b", tmp_path)).startswith(f"{tmp_path} (read by brk): {said}")


# -- recorded answers


def test_two_answers_to_one_question_are_refused_whichever_reader(offer: Offer, tmp_path: Path) -> None:
    offer({"m": HEAD + READER.format(judge=None, reference="A", fields=FIELDS)}, {"benchmarks.b": "brk.m:READER"})
    file, store = tmp_path / "night.txt", tmp_path / "s.db"
    for text, said in (
        ("q1 q1", "found another answer to 'q1', expected one answer to each question"),
        ("q1 q9", "found an answer to 'q9', expected the id of a question"),
    ):
        file.write_text(text, encoding="utf-8")
        told = refusal(lambda: proctor.import_answers("b", file, data=tmp_path, name="n", store=store))
        assert told == f"{file} (read by brk): {said}"
        assert not store.exists()
        assert refusal(lambda: proctor.validate("b", file, data=tmp_path)) == told


YES = tuple(Answer(item_id=item.id, text="yes", parsed=True) for item in lamps().items[:2])
TONE = Score(item_id="room-1/q1", metric="tone", value=1.0, scorer="human:A")
RECORDED: dict[str, tuple[RecordedAnswers, str]] = {
    "answers": (RecordedAnswers((*YES, YES[0])), "found another answer to 'room-1/q1', expected one answer to each"),
    "parsed": (
        RecordedAnswers((YES[0].model_copy(update={"parsed": "yes"}),)),
        "answer to 'room-1/q1', field 'parsed': found 'yes', expected true or false",
    ),
    "unknown": (RecordedAnswers((Answer(item_id="x"),)), "found an answer to 'x', expected the id of a question"),
    "scores": (
        RecordedAnswers(YES, scores=(TONE, TONE)),
        "score of item 'room-1/q1', tone by human:A: found a second one, expected one score of each metric by each",
    ),
    "no answer": (
        RecordedAnswers(YES, scores=(TONE.model_copy(update={"item_id": "room-2/q1"}),)),
        "score of item 'room-2/q1', tone by human:A: found no answer to this item, expected an answer with each score",
    ),
    "code": (
        RecordedAnswers(YES, scores=(TONE.model_copy(update={"scorer": "code", "metric": "accuracy"}),)),
        "score of item 'room-1/q1', accuracy by code: found the name 'code', which belongs to Proctor, expected the name",
    ),
    "range": (
        RecordedAnswers(YES, scores=(TONE.model_copy(update={"metric": "accuracy", "value": 5.0}),)),
        "score of item 'room-1/q1', accuracy by human:A: found 5, expected a number from 0 to 1",
    ),
}


def test_two_parts_of_an_import_have_no_answer_in_common() -> None:
    store, parts = Store(":memory:"), [RecordedAnswers(YES, system="n"), RecordedAnswers(YES[1:], system="n")]
    said = "answers of n: found another answer to 'room-1/q2', expected one answer to each question"
    assert refusal(lambda: asyncio.run(import_systems(store, lamps(), parts, condition="video"))) == said
    assert store.benchmark_names() == []


@pytest.mark.parametrize("case", RECORDED)
@pytest.mark.parametrize("several", [False, True])
def test_recorded_answers_and_scores_are_refused_before_anything_is_stored(case: str, several: bool) -> None:
    recorded, said = RECORDED[case]
    store = Store(":memory:")

    def work() -> None:
        if several:
            asyncio.run(import_systems(store, lamps(), [replace(recorded, system="n")], condition="video"))
        else:
            scorers = code_scorers()
            asyncio.run(import_answers(store, lamps(), recorded, name="n", condition="video", scorers=scorers))

    assert refusal(work).startswith(f"answers of n: {said}")
    assert store.benchmark_names() == []


def test_twenty_thousand_references_are_checked_in_a_moment() -> None:
    """Each is looked at once: a format's `check` is called as often as there are values."""
    calls = 0

    class Counting(ChoiceFormat):
        def check(self, value: Any, options: Any = ()) -> Any:
            nonlocal calls
            calls += 1
            return super().check(value, options)

    one = asked("A", CHOICE).model_copy(update={"answer": Counting()})
    items = tuple(one.model_copy(update={"id": f"q{number}"}) for number in range(20_000))
    proctor.core.admit_benchmark(
        replace(lamps(), items=items, facets=(), buckets=()),
        "x",
        proctor.core.Offered(("video", "text-only"), (), ("accuracy",)),
    )
    assert calls == 20_000
