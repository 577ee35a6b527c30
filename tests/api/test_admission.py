"""What a package brings in is refused where it enters: one line with the package, the place, what was found and the cure,
before anything is stored, and alike for functions and classes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import func, select, update

import proctor
from proctor.core import Answer, Item, ProctorError, RecordedAnswers, Reference, Score, code_hash
from proctor.core.formats import BinaryFormat, ChoiceFormat, ClassesFormat, CountFormat, OrderingFormat
from proctor.metrics import code_scorers
from proctor.runs import Store, import_answers, import_systems, schema
from tests.support.broken_package import Offer, offering
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps

HEAD = """import proctor
from proctor.core import *
from proctor.core.formats import BinaryFormat, ChoiceFormat, FreeTextFormat
from proctor.judges import CachedModel
from proctor.judges.cached_model import as_said
"""


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    yield from offering(tmp_path / "site", monkeypatch)


@pytest.fixture(autouse=True)
def _site(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()


def refusal(work: Any) -> str:
    with pytest.raises(ProctorError) as caught:
        work()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- systems

SYSTEM = """class S:
    name, settings = "mine", {}
    def supports(self, item): return True
    async def answer(self, item, view): return Answer(item_id=item.id, text="yes")
    def __init__(self): pass
"""
SYSTEMS: dict[str, tuple[str, str]] = {
    "a text from a class": (
        SYSTEM.replace('return Answer(item_id=item.id, text="yes")', 'return "yes"'),
        "mine of brk: `answer` returned str, expected an Answer: Answer(item_id=item.id, text=…)",
    ),
    "a plain method": (
        SYSTEM.replace("async def answer", "def answer"),
        "mine of brk: found a plain function `answer`, expected `async def answer`",
    ),
    "settings of a class": (
        SYSTEM.replace('"mine", {}', '"mine", {"files": [1, {"weights": __import__("pathlib").Path("w")}]}'),
        "mine of brk: settings['files'][1]['weights'] is PosixPath, expected a text, a number, true or false, None, a "
        "list or a dict with texts as keys",
    ),
    "settings of a function": (
        '@proctor.system(name="mine", settings={"words": {"a", "b"}})\ndef S(question): return "yes"\n',
        "mine of brk: settings['words'] is set, expected a text, a number, true or false, None, a list or a dict with "
        "texts as keys",
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
        "--system: found 'majority' of {}, expected a name of its own (name=, or --name): results would stand in the "
        "row of Proctor's own system"
    )

    def majority(question: str) -> str:
        return "yes"

    assert refusal(lambda: proctor.run(lamps(), majority, store=":memory:")) == said.format("test_admission.py")
    file = tmp_path / "own.py"
    file.write_text(HEAD + SYSTEM.replace('"mine"', '"majority"'), encoding="utf-8")
    assert refusal(lambda: proctor.run(lamps(), f"{file}:S", store=":memory:")) == said.format("own.py")
    named = "--name: found 'random', the name of Proctor's own system, expected another name"
    assert refusal(lambda: proctor.run(lamps(), lambda question: "yes", name="random", store=":memory:")) == named


# -- scores

JUDGE = """class J:
    metrics = (Metric("tone", "Tone", formats=("free_text",)),)
    def __init__(self, client, votes, *, prompt=None):
        self.name = f"mine[{{client.name}}]"
        self.asked = CachedModel(self.name, client, votes)
    def applies(self, item): return True
    async def score(self, item, answer):
        from pydantic import BaseModel
        class Form(BaseModel):
            tone: float
        await self.asked.ask(as_said(Form), ["?" + item.id], item_id=item.id, content={{"q": item.id}}, flags=lambda _: ())
        {body}
"""
GOOD = 'Score(item_id=item.id, metric="tone", value=1.0, scorer=self.name)'
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
        assert connection.scalar(select(func.count()).select_from(schema.votes)) == server.count


METRICS: dict[str, tuple[str, str]] = {
    "an unknown option": (
        "@proctor.metric(format=['binary'])\ndef mine(text): return True\n",
        "mine: found the option 'format', expected one of name, label, low, high, higher_is_better, percent, chance, "
        "formats; did you mean 'formats'?",
    ),
    "an option misspelt": (
        "@proctor.metric(higher_is_beter=False)\ndef mine(text): return True\n",
        "mine: found the option 'higher_is_beter', expected one of name, label, low, high, higher_is_better, percent, "
        "chance, formats; did you mean 'higher_is_better'?",
    ),
    "an option of a judge": (
        "@proctor.judge(metrics=['a'])\ndef mine(ask): return True\n",
        "mine: found the option 'metrics', expected one of name, label, ",
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


READER = """class Reader(BenchmarkReader):
    name, summary, rubric_judge = "b", "B", {judge!r}
    def load(self, data, media=None, *, seed=0):
        item = Item(id="q1", group="v1", question="Which?", answer=ChoiceFormat(), options=("spleen", "liver"),
                    reference=Reference(answer={reference!r}), tags={{"phase": "1"}})
        return Benchmark({fields})
    def read_recorded(self, path, benchmark):
        return RecordedAnswers(tuple(Answer(item_id=one, text="A", parsed="A") for one in path.read_text().split()))
READER = Reader()
"""
FIELDS = '"b", "B", (item,), (ACCURACY,), "accuracy", conditions=("text-only",)'
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


# -- code that changes while a run goes on

CODE: dict[str, tuple[str, dict[str, str]]] = {
    "condition class": (
        "conditions.mine",
        {
            "m": "from PIL import Image\nfrom io import BytesIO\nfrom proctor.media import Condition\n"
            "from .other import SIZE\nclass Mine(Condition):\n    summary = 'mine'\n    def paint(self, jpeg):\n"
            "        return small(jpeg)\ndef small(jpeg):\n    out = BytesIO()\n"
            "    Image.open(BytesIO(jpeg)).resize((SIZE, 8)).save(out, 'JPEG')\n    return out.getvalue()\n"
            "WIDE = 3\nX = Mine()\n",
            "other": "SIZE = 8\n",
        },
    ),
    "system class": ("systems.mine", {"m": HEAD + SYSTEM + "WIDE = 3\nX = S\n", "other": ""}),
    "system function": (
        "systems.mine",
        {
            "m": HEAD + "from .other import SIZE\n@proctor.system(name='mine')\ndef X(question): return said()\n"
            "def said(): return ['yes', 'no'][SIZE - 8]\nWIDE = 3\n",
            "other": "SIZE = 8\n",
        },
    ),
}
EDITS = [
    ("condition class", "m", "resize((SIZE, 8))", "resize((SIZE, 9))"),
    ("condition class", "other", "SIZE = 8", "SIZE = 9"),
    ("condition class", "m", "return small(jpeg)", "return jpeg"),
    ("system class", "m", '"yes"', '"no"'),
    ("system class", "m", "X = S", "class X(S):\n    def supports(self, item): return item.id != 'room-1/q1'"),
    ("system function", "m", "SIZE - 8", "9 - SIZE"),
    ("system function", "other", "SIZE = 8", "SIZE = 9"),
]


def ask(tmp_path: Path, point: str, **more: Any) -> Any:
    file = tmp_path / "q.csv"
    rows = [f"q{number},p{number},p.png,Is the lamp on?,yes" for number in range(3)]
    file.write_text("id,group,media,question,answer\n" + "\n".join(rows) + "\n", encoding="utf-8")
    Image.new("RGB", (32, 32), "white").save(tmp_path / "p.png")
    condition = "mine" if point.startswith("conditions") else "video"
    system = "mine" if point.startswith("systems") else lambda frames: "yes" if frames else "no"
    named = {} if isinstance(system, str) else {"name": "looks"}
    return proctor.run(file, system, conditions=condition, store=tmp_path / "s.db", baselines=False, **named, **more)


@pytest.mark.parametrize(("kind", "module", "before", "after"), EDITS)
def test_edited_code_is_another_system_or_condition(
    offer: Offer, tmp_path: Path, kind: str, module: str, before: str, after: str
) -> None:
    point, modules = CODE[kind]
    points = {point: "brk.m:X"}
    offer(modules, points)
    ask(tmp_path, point, limit=1)
    offer({**modules, "m": modules["m"].replace("WIDE = 3", "WIDE = 4  # nothing uses it")}, points)
    assert ask(tmp_path, point, limit=2).done[0].startswith("Asked 1: ")
    assert before in modules[module]
    offer({**modules, module: modules[module].replace(before, after)}, points)
    what = point.partition("s.")[0]
    told = refusal(lambda: ask(tmp_path, point))
    assert f"under {'mine' if what == 'condition' else 'video'}: found other settings (" in told
    assert f"the code of the {what} has changed" in told
    offer(modules, points)
    assert ask(tmp_path, point).done[0].startswith("Asked 1: ")


def test_a_run_of_an_older_store_goes_on_and_its_code_is_known_from_then_on(offer: Offer, tmp_path: Path) -> None:
    point, modules = CODE["system class"]
    offer(modules, {point: "brk.m:X"})
    (run,) = ask(tmp_path, point, limit=1).runs
    store = Store(tmp_path / "s.db")
    assert list(run.settings["code"]) == ["system"]
    with store.writing() as connection:  # as before 0.1.0
        older = {name: value for name, value in run.settings.items() if name != "code"}
        connection.execute(update(schema.runs).values(settings=older))
    assert ask(tmp_path, point, limit=2).done[0].startswith("Asked 1: ")
    assert store.runs("q")[0].settings == run.settings
    offer({**modules, "m": modules["m"].replace('"yes"', '"no"')}, {point: "brk.m:X"})
    assert "the code of the system has changed" in refusal(lambda: ask(tmp_path, point))


def test_proctors_own_code_is_its_version() -> None:
    run = proctor.run(lamps(), "majority", conditions="text-only", store=":memory:")
    assert "code" not in run.runs[0].settings
    assert code_hash(proctor.core) == ""


def test_an_edited_scorer_of_a_benchmark_scores_all_answers_again(offer: Offer, tmp_path: Path) -> None:
    metric = "@proctor.metric(name='long')\ndef long(text): return len(text) > LEAST\nLEAST = {}\n"
    fields = FIELDS + ", scorers=(long,)"

    def loaded(least: int) -> proctor.Benchmark:
        code = HEAD + metric.format(least) + READER.format(judge=None, reference="A", fields=fields)
        offer({"m": code.replace("(item,)", "tuple(item.model_copy(update={'id': f'q{n}'}) for n in range(4))")},
              {"benchmarks.b": "brk.m:READER"})  # fmt: skip
        return proctor.load("b", tmp_path)

    def run(benchmark: proctor.Benchmark, limit: int) -> Any:
        return proctor.run(benchmark, lambda question: "A", name="a", conditions="text-only", baselines=False,
                           limit=limit, store=tmp_path / "s.db")  # fmt: skip

    def values() -> list[float]:
        store = Store(tmp_path / "s.db")
        return [row.value for row in store.score_rows(store.runs("b")[0], metric="long")]

    run(loaded(0), 2)
    assert values() == [1.0, 1.0]
    assert "long has changed: 2 stored answers scored again" in run(loaded(5), 3).notes
    assert values() == [0.0, 0.0, 0.0]
    assert not any("has changed" in note for note in run(loaded(5), 4).notes)


def test_an_edited_judge_is_another_judge(offer: Offer, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    code = HEAD + JUDGE.format(body=f"return [{GOOD}]")
    proctor.run(lamps(free_text=True), lambda question: "yes", name="y", conditions="text-only", store=store)
    with FaultyServer('{"tone": 1}') as server:
        given: dict[str, Any] = {"judge": "mine", "model": "judge", "base_url": server.url, "systems": "y"}
        offer({"m": code}, {"judges.mine": "brk.m:J"})
        proctor.score(store, **given, limit=2)
        offer({"m": code.replace("value=1.0", "value=0.5")}, {"judges.mine": "brk.m:J"})
        told = refusal(lambda: proctor.score(store, **given))
        offer({"m": code}, {"judges.mine": "brk.m:J"})
        assert proctor.score(store, **given).by == {"mine[judge]": 14}
    assert "scores by mine[judge]: found other settings (the code of the scorer has changed), expected" in told
    assert "proctor store delete lamps --scorer 'mine[judge]'" in told


def test_a_picture_that_is_no_jpeg_is_not_sent(offer: Offer, tmp_path: Path) -> None:
    point, modules = CODE["condition class"]
    offer({**modules, "m": modules["m"].replace("'JPEG'", "'PNG'")}, {point: "brk.m:X"})
    told = refusal(lambda: ask(tmp_path, point))
    assert told.startswith("condition mine, item 'q0': paint returned ")
    assert told.endswith(" bytes that are no JPEG, expected a JPEG: save(out, 'JPEG')")


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
