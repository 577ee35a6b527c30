"""A person decides what a judge left unresolved: by a file that is read whole or not at all, kept with who, when,
why."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from proctor.core import Answer, Benchmark, FailedPolicy, InputError, Item, Metric, Reference, Score, Status
from proctor.core.formats import FreeTextFormat
from proctor.judges import NO_VERDICT, TIE, UNRESOLVED, VERDICT_METRICS, verdict_scores
from proctor.reports import write_public_report, write_report
from proctor.results import Options, Result, compared, item_history, leaderboard, official_summaries, rank_runs, results
from proctor.runs import Run, Store, decide, judge_all, schema, write_open
from proctor.runs.unresolved import DecisionCounts, open_answers
from proctor.stats import RankingPlan
from proctor.tasks.focus import toolkit_summary as program
from tests.support.panelled_store import PANEL, panelled
from tests.support.program import proctor, within

JUDGE = "three-level[m]"
NOW, LATER = "2026-08-01T10:00:00+00:00", "2026-08-03T10:00:00+00:00"
QUESTIONS = 8
FORMULA = '=HYPERLINK("http://x")'

Rows = list[dict[str, str]]


def opened(store: Store, system: str, values: str) -> Run:
    """A run whose answers the judge gave 2, 1 or 0, or ("?") no verdict."""
    run = store.start_run("told", system, "video", {})
    texts = [f"{system} says {n}" for n in range(len(values))]
    texts[0] = FORMULA
    store.write(run, [(Answer(item_id=f"q{n}", text=text, parsed=text), []) for n, text in enumerate(texts)])
    error = {"2": "none", "1": "wrong_conclusion", "0": "both"}
    for n, value in enumerate(values):
        found = (
            [Score(item_id=f"q{n}", metric=UNRESOLVED.name, value=1.0, scorer=JUDGE, label=NO_VERDICT)]
            if value == "?"
            else verdict_scores(int(value), error[value], item_id=f"q{n}", scorer=JUDGE)
        )
        store.add_scores(run, found)
    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question="What, happens?\nSay it.",
            answer=FreeTextFormat(),
            reference=Reference(answer="It is clipped.", rationale="Two clips."),
        )
        for number in range(QUESTIONS)
    )
    made = Store(tmp_path / "runs.db")
    made.add_benchmark(Benchmark("told", "Told", items, VERDICT_METRICS, "rubric"))
    made.declare_metrics("told", [*VERDICT_METRICS, UNRESOLVED])
    opened(made, "honest", "22221100")
    opened(made, "other", "??222200")
    return made


def read(file: Path) -> Rows:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def write(file: Path, rows: Rows) -> Path:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def filled(store: Store, file: Path, values: list[str], benchmark: str = "told", **more: Any) -> Path:
    """The open answers with these values, each for a reason."""
    file.unlink(missing_ok=True)
    write_open(store, benchmark, file, **more)
    rows = read(file)
    for row, value in zip(rows, values, strict=True):
        row |= {"value": value, "reason": f"it is {value}" if value else ""}
    return write(file, rows)


def row(store: Store, system: str, metric: str = "rubric", failed: FailedPolicy | None = None) -> Result:
    found = results(store, "told", Options(draws=100, failed=failed)).rows
    (one,) = (one for one in found if (one.system, one.metric) == (system, metric))
    return one


def kept(store: Store) -> list[tuple[Any, ...]]:
    """Every score and judgement of a store."""
    with store.reading() as connection:
        return [tuple(one) for table in (schema.scores, schema.judgements) for one in connection.execute(select(table))]


def test_what_a_person_decides_completes_the_judges_series(store: Store, tmp_path: Path) -> None:
    before = row(store, "other")
    assert (before.value, before.if_wrong, before.unresolved, before.decided) == (None, 1.0, 2, 0)
    file = filled(store, tmp_path / "open.csv", ["2", " 1 Wrong conclusion "])
    assert decide(store, "told", file, by="Anna", at=NOW) == DecisionCounts(2, 0, 0, 0)
    after = row(store, "other")
    assert (after.value, after.policy, after.unresolved, after.decided) == ((2 + 1 + 8) / 8, "", 0, 2)
    assert (after.n, after.levels["1 wrong conclusion"]) == (QUESTIONS, 1)
    assert row(store, "other", "rubric_by_error_type").value == after.value
    assert row(store, "other", "contradiction").value == 0
    state = row(store, "other", UNRESOLVED.name)
    assert (state.value, state.levels) == (0, {"decided by human:Anna": 2})
    assert row(store, "honest").decided == 0


def test_who_when_and_why_stay_on_record(store: Store, tmp_path: Path) -> None:
    decide(store, "told", filled(store, tmp_path / "a.csv", ["2", ""]), by="Anna", at=NOW)
    (given,) = item_history(store, "told", "q0", ["other"]).given
    (judgement,) = given.judgements
    told = {"value": "2", "reason": "it is 2", "at": NOW, "metric": "rubric", "instead_of": JUDGE}
    assert judgement.judge == "human:Anna"
    assert dict(judgement.reply) == told | {"system": "other", "condition": "video"}
    assert {(one.scorer, one.judgement_key) for one in given.scores} == {(JUDGE, judgement.key)}


def test_the_file_shows_what_a_person_needs_and_runs_nothing(store: Store, tmp_path: Path) -> None:
    assert write_open(store, "told", tmp_path / "open.csv", ["other"]) == 2
    first, second = read(tmp_path / "open.csv")
    assert first["answer"] == f"'{FORMULA}"
    assert second["answer"] == "other says 1"
    assert first["question"] == "What, happens?\nSay it."
    assert first["reference"] == "It is clipped.\nRationale: Two clips."
    assert (first["judge"], first["metric"], first["state"]) == (JUDGE, "rubric", NO_VERDICT)
    assert first["values"] == "one of: 2; 1 wrong conclusion; 1 wrong visual evidence; 0"
    assert (first["value"], first["reason"]) == ("", "")
    with pytest.raises(InputError, match=r"open\.csv: found a file, which may hold decisions"):
        write_open(store, "told", tmp_path / "open.csv")
    assert write_open(store, "told", tmp_path / "none.csv", ["honest"]) == 0


def changed(**cells: str) -> Callable[[Rows], None]:
    return lambda rows: rows[1].update(cells)


WRONG: dict[str, tuple[Callable[[Rows], Any], str]] = {
    "item": (changed(item="q9"), "row 3, column 'item': found 'q9', expected one of q0"),
    "system": (changed(system="othr"), "row 3, column 'system': found 'othr', expected one of honest, other"),
    "condition": (changed(condition="blind"), "row 3, column 'condition': found 'blind'"),
    "judge": (changed(judge="me"), "row 3, column 'judge': found 'me'"),
    "metric": (changed(metric="rubic"), "row 3, column 'metric': found 'rubic'"),
    "settled": (changed(item="q5"), "row 3: found an answer that is not open"),
    "half": (changed(value="1"), "row 3, column 'value': found '1', expected one of: 2; 1 wrong"),
    "range": (changed(value="3"), "row 3, column 'value': found '3', expected one of: 2; 1 wrong"),
    "why": (changed(reason=" "), "row 3, column 'reason': found a value without a reason"),
    "what": (changed(value=""), "row 3, column 'value': found a reason alone"),
    "another answer": (changed(answer_id="a-0"), "row 3, column 'answer_id': found 'a-0', another answer"),
    "twice": (lambda rows: rows.append(dict(rows[0])), "row 4: found a decision, as in row 2"),
    "column": (lambda rows: [one.pop("value") for one in rows], "no column 'value'"),
    "nothing": (
        lambda rows: [one.update(value="", reason="") for one in rows],
        "column 'value': found nothing in 2 rows, expected one decision or more",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named_by_its_row_and_leaves_nothing(case: str, store: Store, tmp_path: Path) -> None:
    change, said = WRONG[case]
    rows = read(filled(store, tmp_path / "open.csv", ["2", "0"]))
    change(rows)
    before = kept(store)
    with pytest.raises(InputError) as raised:
        decide(store, "told", write(tmp_path / "open.csv", rows), by="Anna", at=NOW)
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'open.csv'}: ")
    assert kept(store) == before


def test_nobody_decides_namelessly(store: Store, tmp_path: Path) -> None:
    file = filled(store, tmp_path / "open.csv", ["2", "0"])
    for by in ("", " ", "human:", "a\x00b"):
        with pytest.raises(InputError, match="--by"):
            decide(store, "told", file, by=by, at=NOW)


def test_a_judge_that_settled_it_meanwhile_is_not_overruled(store: Store, tmp_path: Path) -> None:
    file = filled(store, tmp_path / "open.csv", ["2", "0"])
    (run,) = (one for one in store.runs("told") if one.system == "other")
    settled = Score(item_id="q1", metric=UNRESOLVED.name, value=0.0, scorer=JUDGE, label="resolved")
    store.add_scores(run, [*verdict_scores(2, "none", item_id="q1", scorer=JUDGE), settled])
    with pytest.raises(InputError, match="row 3: found an answer that is not open"):
        decide(store, "told", file, by="Anna", at=NOW)


def test_a_later_decision_replaces_the_former_which_stays_on_record(store: Store, tmp_path: Path) -> None:
    file = filled(store, tmp_path / "a.csv", ["0", "0"])
    decide(store, "told", file, by="Anna", at=NOW)
    assert decide(store, "told", file, by="Anna", at=LATER) == DecisionCounts(0, 0, 2, 0)
    again = filled(store, tmp_path / "b.csv", ["2", ""], decided=True)
    assert read(again)[0]["state"] == "decided by human:Anna"
    assert decide(store, "told", again, by="Ben", at=LATER) == DecisionCounts(1, 1, 0, 0)
    assert row(store, "other").value == (2 + 0 + 8) / 8
    assert row(store, "other", UNRESOLVED.name).levels == {"decided by human:Anna": 1, "decided by human:Ben": 1}
    (given,) = item_history(store, "told", "q0", ["other"]).given
    said = {one.judge: (one.reply["value"], one.reply["at"]) for one in given.judgements}
    assert said == {"human:Anna": ("0", NOW), "human:Ben": ("2", LATER)}


class Asked:
    """The judge, who gives 0 to everything and counts what it is asked."""

    name = JUDGE
    metrics: tuple[Metric, ...] = VERDICT_METRICS

    def __init__(self) -> None:
        self.items: list[str] = []

    def applies(self, item: Item) -> bool:
        return True

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        self.items.append(item.id)
        return verdict_scores(0, "both", item_id=item.id, scorer=self.name)


def test_the_judge_is_asked_only_about_what_is_open_still(store: Store, tmp_path: Path) -> None:
    decide(store, "told", filled(store, tmp_path / "a.csv", ["2", ""]), by="Anna", at=NOW)
    judge = Asked()
    asyncio.run(judge_all(store, store.runs("told"), judge))
    assert judge.items == ["q1"]
    assert row(store, "other").value == (2 + 0 + 8) / 8


def test_a_run_stands_where_the_decision_puts_it(store: Store, tmp_path: Path) -> None:
    def order() -> list[tuple[str, float | None]]:
        board = leaderboard(store, "told", condition="video", options=Options(draws=100))
        return [(one.system, one.value) for one in board.rows]

    assert order() == [("honest", 1.25), ("other", None)]
    decide(store, "told", filled(store, tmp_path / "a.csv", ["0", "0"]), by="Anna", at=NOW)
    assert order() == [("honest", 1.25), ("other", 1.0)]
    again = filled(store, tmp_path / "b.csv", ["2", "2"], decided=True)
    decide(store, "told", again, by="Anna", at=LATER)
    assert order() == [("other", 1.5), ("honest", 1.25)]


def test_what_a_person_decided_is_no_score_of_the_judge_in_an_audit(store: Store, tmp_path: Path) -> None:
    for run in store.runs("told"):
        store.add_scores(
            run,
            [
                Score(item_id=f"q{n}", metric="rubric", value=float(n % 3), scorer="human:rater")
                for n in range(QUESTIONS)
            ],
        )
    before = compared(store, "told", [JUDGE], ["human:rater"], allow_missing=True)[1][0].scores
    decide(store, "told", filled(store, tmp_path / "a.csv", ["2", "0"]), by="Anna", at=NOW)
    assert compared(store, "told", [JUDGE], ["human:rater"], allow_missing=True)[1][0].scores == before
    assert len(before) == 2 * QUESTIONS - 2


# -- a panel, on FOCUS


@pytest.fixture
def focus(tmp_path: Path) -> Store:
    """Three teams; on 4 answers of team-red its panel is tied."""
    (tmp_path / "focus").mkdir()
    made = panelled(tmp_path / "focus")
    made.declare_metrics("focus", [UNRESOLVED])
    (run,) = (one for one in made.runs("focus") if one.system == "team-red")
    items = ["q-000", "q-002", "q-004", "q-006"]
    scores, known = schema.scores, schema.items
    with made.writing() as connection:
        numbers = select(known.c.id).where(known.c.item.in_(items))
        connection.execute(
            delete(scores).where(scores.c.run == run.id, scores.c.scorer == PANEL, scores.c.item.in_(numbers))
        )
    made.add_scores(
        run, [Score(item_id=one, metric=UNRESOLVED.name, value=1.0, scorer=PANEL, label=TIE) for one in items]
    )
    return made


def test_rank_and_the_official_summary_count_the_decision(focus: Store, tmp_path: Path) -> None:
    def figures() -> tuple[float, int, int]:
        board = rank_runs(focus, "focus", plan=RankingPlan(stability=0))[0]
        (red,) = (one for one in board.runs if one.standing.name == "team-red")
        (official,) = (
            one
            for one in official_summaries(focus, "focus", program.figures, official=True)
            if one.system == "team-red"
        )
        right = sum(one.values(FailedPolicy.WRONG)[~one.failed].sum() for one in scored(focus))
        return float(right), red.standing.rank, official.lacking

    wrong, _, lacking = figures()
    assert lacking == 4
    file = filled(focus, tmp_path / "open.csv", ["right", "wrong", "right", "right"], "focus")
    assert [one["values"] for one in read(file)] == ["one of: right; wrong"] * 4
    assert decide(focus, "focus", file, by="Anna", at=NOW) == DecisionCounts(4, 0, 0, 0)
    assert figures() == (wrong + 3, 1, 0)


def scored(store: Store) -> list[Any]:
    from proctor.results.arrays import load_items
    from proctor.results.run_scores import load_accuracy

    card = store.card("focus")
    runs = [one for one in store.runs("focus") if one.system == "team-red"]
    return list(load_accuracy(store, runs, load_items(store, card), card).values())


def test_a_published_page_names_nobody_who_decided(focus: Store, tmp_path: Path) -> None:
    file = filled(focus, tmp_path / "open.csv", ["right", "wrong", "right", "right"], "focus")
    decide(focus, "focus", file, by="Dr Weber", at=NOW)
    write_report(focus, "focus", tmp_path / "whole.html", options=Options(draws=100))
    write_public_report(focus, "focus", tmp_path / "public.html", options=Options(draws=100))
    whole, public = (tmp_path / "whole.html").read_text(), (tmp_path / "public.html").read_text()
    for page in (whole, public):
        assert "a person gave the score instead" in page
    assert "human:Dr Weber" in whole
    assert "Weber" not in public


def test_a_judge_that_gave_nothing_at_all_is_known_by_its_kind(tmp_path: Path, store: Store) -> None:
    (run,) = (one for one in store.runs("told") if one.system == "honest")
    for name in ("three-level[never]", "stranger"):
        store.add_scores(run, [Score(item_id="q3", metric=UNRESOLVED.name, value=1.0, scorer=name, label=NO_VERDICT)])
    with pytest.raises(InputError, match="judge stranger: found no verdict on any answer of told"):
        open_answers(store, "told", ["honest"])
    with store.writing() as connection:
        connection.execute(delete(schema.scores).where(schema.scores.c.scorer == "stranger"))
    (one,) = open_answers(store, "told", ["honest"])
    assert (one.judge, one.metric.name) == ("three-level[never]", "rubric")


def test_several_metrics_are_decided_together(tmp_path: Path) -> None:
    from proctor.judges import RATIONALE_METRICS

    item = Item(id="q", group="v", question="Why?", answer=FreeTextFormat())
    free = tuple(Metric(one.name, one.label, low=1.0, high=5.0, formats=("free_text",)) for one in RATIONALE_METRICS)
    made = Store(tmp_path / "runs.db")
    made.add_benchmark(Benchmark("why", "Why", (item,), free, free[0].name))
    run = made.start_run("why", "one", "video", {})
    made.write(run, [(Answer(item_id="q", text="So.", parsed="So.", status=Status.ANSWERED), [])])
    made.add_scores(
        run, [Score(item_id="q", metric=UNRESOLVED.name, value=1.0, scorer="rationale[m]", label=NO_VERDICT)]
    )
    half = filled(made, tmp_path / "half.csv", ["3", "", "2.5", "1"], "why")
    with pytest.raises(InputError, match="no decision on rationale_correctness, expected all metrics"):
        decide(made, "why", half, by="Anna", at=NOW)
    beyond = filled(made, tmp_path / "beyond.csv", ["3", "6", "2.5", "1"], "why")
    with pytest.raises(InputError, match="found '6', expected a number from 1 to 5"):
        decide(made, "why", beyond, by="Anna", at=NOW)
    whole = filled(made, tmp_path / "whole.csv", ["3", "5", "2.5", "1"], "why")
    assert decide(made, "why", whole, by="Anna", at=NOW) == DecisionCounts(1, 0, 0, 0)
    again = filled(made, tmp_path / "again.csv", ["", "4", "", ""], "why", decided=True)
    assert decide(made, "why", again, by="Anna", at=LATER) == DecisionCounts(1, 1, 0, 0)
    found = {one.metric: one.value for one in results(made, "why", Options(draws=100)).rows}
    assert found["rationale_correctness"] == 4
    assert found["rationale_coverage"] == 2.5


def test_what_a_judge_gave_of_several_scores_is_not_overruled(tmp_path: Path) -> None:
    names = ("first", "second")
    both = tuple(Metric(name, name, formats=("free_text",)) for name in names)
    made = Store(tmp_path / "runs.db")
    item = Item(id="q", group="v", question="Why?", answer=FreeTextFormat())
    made.add_benchmark(Benchmark("why", "Why", (item, item.model_copy(update={"id": "r"})), both, "first"))
    run = made.start_run("why", "one", "video", {})
    made.write(run, [(Answer(item_id=name, text="So.", parsed="So."), []) for name in "qr"])
    scores = [Score(item_id=item, metric=metric, value=0.25, scorer="judge") for item in "qr" for metric in names]
    left = Score(item_id="q", metric=UNRESOLVED.name, value=1.0, scorer="judge", label=NO_VERDICT)
    made.add_scores(run, [*scores[1:], left])
    for decided, value in ((False, "1"), (True, "0.5")):
        file = filled(made, tmp_path / f"{value}.csv", [value], "why", decided=decided)
        assert [one["metric"] for one in read(file)] == ["first"]
        assert decide(made, "why", file, by="Anna", at=NOW).answers == 1
    found = {one.metric: one.value for one in results(made, "why", Options(draws=100)).rows}
    assert (found["first"], found["second"]) == ((0.5 + 0.25) / 2, 0.25)


def test_on_the_command_line(store: Store, tmp_path: Path) -> None:
    url, file = store.shown, tmp_path / "open.csv"
    code, printed = within("export", "told", "--format", "unresolved", "--out", file, "--store", url)
    assert (code, printed) == (0, f"2 rows in {file}\n")
    rows = read(file)
    rows[0] |= {"value": "2", "reason": "as the reference"}
    write(file, rows)
    command = ("import", "told", file, "--decided-by", "Anna", "--store", url)
    assert within(*command) == (0, "Answers decided: 1; still unresolved: 1\n")
    said = "Answers decided: 0; decided so before: 1; still unresolved: 1\n"
    assert within(*command) == (0, said)
    code, printed = within("results", "told", "--store", url, "--draws", "100")
    assert "Decided by a person: the judge left the answer unresolved" in " ".join(printed.split())
    printed = proctor("results", "told", "--store", url, "--draws", "100", "--format", "json").stdout
    assert {one["decided"] for one in json.loads(printed) if one["system"] == "other"} == {1}
    code, printed = within("show", "told", "q0", "--store", url, "--system", "other")
    assert "human:Anna replied" in printed
    assert "as the reference" in printed
    rows[0]["value"] = "9"
    write(file, rows)
    code, printed = within(*command)
    assert code == 1
    assert printed.startswith(f"proctor: {file}: row 2, column 'value': found '9', expected one of: 2;")
