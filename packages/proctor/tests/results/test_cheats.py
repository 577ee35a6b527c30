"""Failing must not pay: four ways to be wrong by not answering, each of which ends below the honest system.

600 counts of 24 videos, half of them hard, asked through the project's own engine. The honest system is right in 90 %
of the easy and 55 % of the hard ones, its rival in 80 and 45 %, the cheats in 84 and 15 %. On hard questions the
crasher raises an exception and the refuser refuses; the saboteur's connection fails for 570 of the 600. In a second
benchmark the answers are free text, and the tripper's wrong ones on hard questions are of the kind that the judge
declines to score.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    FailedPolicy,
    InfrastructureError,
    Item,
    NoVerdictError,
    OfficialFigure,
    Reference,
    RefusalError,
    Score,
    View,
    generator,
)
from proctor.core.formats import CountFormat, FreeTextFormat
from proctor.judges import PANEL_ACCURACY
from proctor.media import MediaLibrary, view
from proctor.metrics import AccuracyScorer
from proctor.reports import write_report
from proctor.results import (
    BOTH,
    Comparison,
    Contest,
    Leaderboard,
    Options,
    Result,
    analyse,
    compare,
    leaderboard,
    official_summaries,
    rank_runs,
    results,
)
from proctor.runs import Limits, Store, judge_all
from proctor.runs.engine import Job, ask_all
from proctor.stats import RankingPlan, Resampling
from tests.support.program import within

VIDEOS, QUESTIONS = 24, 600
RATES = {"honest": (0.90, 0.55), "rival": (0.80, 0.45)}
CHEAT = (0.84, 0.15)
CHEATS = ("crasher", "refuser", "saboteur")
TRIPPER = "tripper"
DRAWS = 200


def hard(number: int) -> bool:
    return number % 2 == 1


def questions(*, texts: bool = False) -> tuple[Item, ...]:
    return tuple(
        Item(
            id=f"q{number:03d}",
            group=f"v{number % VIDEOS:02d}" if not hard(number) else f"v{(number // 2) % VIDEOS:02d}",
            question="What is clipped?" if texts else "How many clips?",
            answer=FreeTextFormat() if texts else CountFormat(),
            reference=Reference(answer="the duct" if texts else 1),
            tags={"hard": hard(number)},
        )
        for number in range(QUESTIONS)
    )


class Contestant:
    """Right as often as it can be, and with a way of its own where it does not know."""

    def __init__(self, name: str) -> None:
        self._name = name
        draw = generator(0, "cheats", name)
        easy, difficult = RATES.get(name, CHEAT)
        self._right = [draw.random() < (difficult if hard(n) else easy) for n in range(QUESTIONS)]
        self._ways: dict[str, Callable[[int], None]] = {
            "crasher": self._crash,
            "refuser": self._refuse,
            "saboteur": self._fail,
        }

    @property
    def name(self) -> str:
        return self._name

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {}

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        number = int(item.id[1:])
        if self._name in self._ways:
            self._ways[self._name](number)
        right = self._right[number]
        if isinstance(item.answer, FreeTextFormat):
            trips = self._name == TRIPPER and hard(number)
            said = "the duct" if right else "how to harm somebody" if trips else "the artery"
            return Answer(item_id=item.id, text=said)
        return Answer(item_id=item.id, text=f"Answer: {1 if right else 2}")

    def _crash(self, number: int) -> None:
        if hard(number):
            raise ValueError("no clip found")

    def _refuse(self, number: int) -> None:
        if hard(number):
            raise RefusalError("I can't help with that")

    def _fail(self, number: int) -> None:
        if number >= 30 or not self._right[number]:
            raise InfrastructureError("connection refused")


class Judge:
    """Declines what its content filter does not let pass."""

    name = "judge"
    metrics = (PANEL_ACCURACY,)

    def applies(self, item: Item) -> bool:
        return isinstance(item.answer, FreeTextFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        if "harm" in answer.text:
            raise NoVerdictError("judge: no verdict: I can't help with that")
        right = float(answer.text == "the duct")
        return [Score(item_id=item.id, metric="accuracy", value=right, scorer=self.name)]


def filled(
    store: Store, names: Sequence[str], *, name: str = "cheats", texts: bool = False, failed: FailedPolicy | None = None
) -> Store:
    metric = PANEL_ACCURACY if texts else ACCURACY
    items = questions(texts=texts)
    benchmark = Benchmark(
        name, "Cheats", items, (metric,), "accuracy", facets=("hard",), buckets=("hard",), failed=failed
    )
    store.add_benchmark(benchmark)
    library = MediaLibrary(None)
    jobs = [
        Job(
            store.start_run(name, system, "text-only", {}),
            Contestant(system),
            benchmark.items,
            lambda item: view(item, "text-only", library),
            [AccuracyScorer()],
        )
        for system in names
    ]
    asyncio.run(ask_all(jobs, store, limits=Limits(give_up_after=QUESTIONS)))
    if texts:
        asyncio.run(judge_all(store, [job.run for job in jobs], Judge()))
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = filled(Store(tmp_path_factory.mktemp("cheats") / "runs.db"), (*RATES, *CHEATS))
    yield made
    made.close()


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The same, of a benchmark whose rules count as wrong what is lacking."""
    made = filled(Store(tmp_path_factory.mktemp("ruled") / "runs.db"), (*RATES, "saboteur"), failed=FailedPolicy.WRONG)
    yield made
    made.close()


def rows(store: Store, failed: FailedPolicy | None = None) -> dict[str, Result]:
    return {row.system: row for row in results(store, "cheats", Options(draws=DRAWS, failed=failed)).rows}


@pytest.mark.parametrize("cheat", ["crasher", "refuser"])
def test_an_exception_or_a_refusal_is_an_answer_and_wrong_under_any_policy(store: Store, cheat: str) -> None:
    found = [rows(store), *(rows(store, policy) for policy in FailedPolicy)]
    for one in found:
        assert (one[cheat].n, one[cheat].failed, one[cheat].policy) == (QUESTIONS, 0, "")
        assert one[cheat].value == one[cheat].if_wrong == one[cheat].if_excluded
        assert (one[cheat].value or 1) < (one["rival"].value or 0) < (one["honest"].value or 0)
    assert rows(store)["crasher"].error == rows(store)["refuser"].refused == QUESTIONS // 2


def test_what_the_honest_one_has_does_not_depend_on_who_fails(store: Store) -> None:
    for one in (rows(store), *(rows(store, policy) for policy in FailedPolicy)):
        assert one["honest"].n == QUESTIONS
        assert one["honest"].value == pytest.approx(0.725, abs=0.04)


def test_a_saboteur_has_a_range_and_no_value_that_beats_the_honest(store: Store) -> None:
    row = rows(store)["saboteur"]
    assert (row.policy, row.value, row.n) == (BOTH, None, QUESTIONS)
    assert row.failed + row.missing > 560
    assert row.if_wrong is not None
    assert row.if_wrong < 0.06
    assert row.if_excluded == 1.0
    assert row.ci_low is not None
    assert row.ci_low < 0.06


def board(store: Store, failed: FailedPolicy | None = None) -> Leaderboard:
    return leaderboard(store, "cheats", condition="text-only", options=Options(draws=DRAWS, failed=failed))


@pytest.mark.parametrize("policy", [None, *FailedPolicy])
def test_no_cheat_is_ranked_at_or_above_the_honest(store: Store, policy: FailedPolicy | None) -> None:
    found = board(store, policy)
    ranks = {row.system: row.rank for row in found.rows}
    assert (ranks["honest"], ranks["rival"]) == (1, 2)
    assert (ranks["crasher"], ranks["refuser"]) == (3, 3)
    assert ranks["saboteur"] == (5 if policy is FailedPolicy.WRONG else None)
    assert (found.items, found.left_out) == (QUESTIONS, 0)
    assert found.rows[0].system == "honest"
    assert found.rows[-1].system == "saboteur"


def test_the_benchmarks_own_rule_holds_without_a_choice(ruled: Store) -> None:
    assert rows(ruled)["saboteur"].policy == "wrong"
    assert {row.system: row.rank for row in board(ruled).rows}["saboteur"] == 3


def against_honest(store: Store, cheat: str) -> Comparison:
    options = Options(draws=DRAWS, systems=(cheat, "honest"), conditions=("text-only",))
    (one,) = compare(store, "cheats", options).comparisons
    return one


@pytest.mark.parametrize("cheat", ["crasher", "refuser"])
def test_compared_with_the_honest_a_cheat_is_worse(store: Store, cheat: str) -> None:
    one = against_honest(store, cheat)
    assert one.difference.value is not None
    assert one.difference.value < -0.2
    assert one.p_holm is not None
    assert one.p_holm < 0.01
    assert (one.only_first, one.only_second, one.difference.n) == (0, 0, QUESTIONS)


def test_compared_with_the_honest_a_saboteur_is_never_better(store: Store, ruled: Store) -> None:
    one = against_honest(store, "saboteur")
    assert (one.policy, one.difference.value, one.p_holm) == (BOTH, None, None)
    assert one.if_excluded.value is not None
    assert one.if_excluded.value > 0  # the answers that it gave are right: the two readings point different ways
    strict = against_honest(ruled, "saboteur")
    assert strict.difference.value is not None
    assert strict.difference.value < -0.6


@pytest.mark.parametrize("policy", FailedPolicy)
def test_the_policy_decides_a_comparison(store: Store, policy: FailedPolicy) -> None:
    """What failed is wrong, or left out of this pair alone: one answer to `--failed` in `compare` as elsewhere."""
    code, text = within(
        "compare", "cheats", "--store", store.shown, "--system", "saboteur", "--system", "honest", "--draws", "100",
        "--failed", policy.value, "--format", "json",
    )  # fmt: skip
    assert code == 0, text
    (one,) = json.JSONDecoder().raw_decode(text)[0]
    assert one["policy"] == policy.value
    if policy is FailedPolicy.WRONG:
        assert (one["n"], one["difference"] < -0.6, one["p_holm"] < 0.01) == (QUESTIONS, True, True)
    else:
        assert (one["n"] <= 30, one["difference"] > 0) == (True, True)


def test_the_report_says_the_same(store: Store, tmp_path: Path) -> None:
    write_report(store, "cheats", tmp_path / "report.html", options=Options(draws=DRAWS), max_items=0)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    table = page[page.index('id="leaderboard"') :]
    names = sorted((*RATES, *CHEATS), key=table.index)
    assert names[:2] == ["honest", "rival"]
    assert names[-1] == "saboteur"
    row = rows(store)["saboteur"]
    assert row.if_wrong is not None
    assert f"{ACCURACY.show(row.if_wrong)} … 100.0 %" in table


@pytest.mark.parametrize("policy", [None, *FailedPolicy])
def test_on_a_board_over_buckets_no_cheat_stands_at_or_above_the_honest(
    store: Store, policy: FailedPolicy | None
) -> None:
    contest = Contest(condition="text-only", failed=policy)
    found = rank_runs(store, "cheats", contest, plan=RankingPlan(draws=DRAWS))[0]
    ranks = {one.standing.name: one.standing.rank for one in found.runs}
    assert (ranks["honest"], ranks["rival"]) == (1, 2)
    assert ranks["crasher"] > 2
    assert ranks["refuser"] > 2
    assert (ranks.get("saboteur"), found.items) == (5 if policy is FailedPolicy.WRONG else None, QUESTIONS)
    scores = {one.standing.name: one.standing.scores for one in found.runs}
    alone = rank_runs(store, "cheats", replace(contest, systems=("honest", "rival")), plan=RankingPlan(draws=DRAWS))[0]
    assert {one.standing.name: one.standing.scores for one in alone.runs} == {
        name: scores[name] for name in ("honest", "rival")
    }


def test_an_analysis_gives_no_cheat_a_better_accuracy_by_default(store: Store) -> None:
    found = analyse(store, "cheats", Contest(condition="text-only"), stability=0, plan=Resampling(draws=DRAWS))
    rows = {(row["system"], row["label"]): row for row in found.tables["capabilities"] if row["stratum"] == "all"}
    for cheat in CHEATS:
        assert rows[cheat, "yes"]["n"] == rows["honest", "yes"]["n"] == QUESTIONS // 2
        assert rows[cheat, "yes"]["value"] < rows["honest", "yes"]["value"]


def mean(
    groups: Sequence[str],
    tags: Sequence[dict[str, JsonValue]],
    right: Sequence[float],
    late: int,
    *,
    official: bool,
    draws: int,
    seed: int,
) -> list[OfficialFigure]:
    """A benchmark's own program whose summary is the mean."""
    return [OfficialFigure("overall", "MEAN", sum(right) / len(right), None, None, len(right))]


def test_the_official_summary_counts_what_failed_as_the_policy_says(store: Store, ruled: Store) -> None:
    options = Options(draws=DRAWS, failed=FailedPolicy.WRONG)
    for opened, chosen in ((ruled, Options(draws=DRAWS)), (store, options)):
        found = official_summaries(opened, "cheats", mean, official=True, options=chosen)
        means = {one.system: one.figures[0].value or 0 for one in found}
        assert sorted(means, key=lambda name: -means[name])[:2] == ["honest", "rival"]
        assert {one.figures[0].n for one in found} == {QUESTIONS}
        assert {one.left_out for one in found} == {0}
    both = official_summaries(store, "cheats", mean, official=True, options=Options(systems=("saboteur",)))
    assert [one.policy for one in both] == ["wrong", "exclude"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """All four cheats, in benchmarks without a rule on what is lacking and in such that count it as wrong."""
    made = Store(tmp_path_factory.mktemp("everything") / "runs.db")
    for name, failed in (("open", None), ("strict", FailedPolicy.WRONG)):
        filled(made, ("honest", *CHEATS), name=f"counts-{name}", failed=failed)
        filled(made, ("honest", TRIPPER), name=f"texts-{name}", texts=True, failed=failed)
    yield made
    made.close()


@dataclass(frozen=True)
class Standing:
    """What an output says of a system: its score, None where it gives a range or no rank, and whether it says that the
    system beats the honest one."""

    score: float | None
    beats_honest: bool


def in_results(store: Store, benchmark: str, system: str, folder: Path) -> Standing:
    rows = results(store, benchmark, Options(draws=DRAWS)).rows
    found = {row.system: row.value for row in rows if row.metric == ACCURACY.name}
    mine, honest = found[system], found["honest"]
    return Standing(mine, None not in (mine, honest) and (mine or 0) >= (honest or 0))


def in_rank(store: Store, benchmark: str, system: str, folder: Path) -> Standing:
    found = rank_runs(store, benchmark, Contest(condition="text-only"), plan=RankingPlan(draws=DRAWS))[0]
    rank = {one.standing.name: one.standing.rank for one in found.runs}
    mean = {one.standing.name: one.standing.mean for one in found.runs}
    return Standing(mean.get(system), system in rank and rank[system] <= rank["honest"])


def in_comparison(store: Store, benchmark: str, system: str, folder: Path) -> Standing:
    options = Options(draws=DRAWS, systems=(system, "honest"))
    (one,) = compare(store, benchmark, options).comparisons
    sign = 1 if one.first.system == system else -1
    ahead = None if one.difference.value is None else sign * one.difference.value
    return Standing(ahead, ahead is not None and ahead >= 0)


def in_report(store: Store, benchmark: str, system: str, folder: Path) -> Standing:
    """By the order of the page's own tables, and by the number in the row."""
    path = folder / f"{benchmark}.html"
    if not path.exists():
        write_report(store, benchmark, path, options=Options(draws=DRAWS), max_items=0)
    page = path.read_text(encoding="utf-8")
    above = []
    for section in ("leaderboard", "ranking"):
        table = page[page.index(f'id="{section}"') :]
        above.append(table.index(f">{system}<") < table.index(">honest<"))
    table = page[page.index('id="leaderboard"') :]
    row = table[table.index(f">{system}<") :].split("</li>")[0]
    shown = re.findall(r"([\d.]+) %<", row)
    return Standing(None if " … " in row else float(shown[0]) / 100, any(above))


def in_official(store: Store, benchmark: str, system: str, folder: Path) -> Standing:
    found = official_summaries(store, benchmark, mean, official=True, options=Options(draws=DRAWS))
    figures = {one: [row.figures[0].value or 0 for row in found if row.system == one] for one in ("honest", system)}
    assert all(row.policy for row in found if row.system == system and row.lacking)  # a reading is named as one
    mine = figures[system]
    return Standing(mine[0] if len(mine) == 1 else None, min(mine) >= max(figures["honest"]))


OUTPUTS = {
    "results": in_results,
    "rank": in_rank,
    "compare": in_comparison,
    "report": in_report,
    "as official": in_official,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("rule", ["open", "strict"])
@pytest.mark.parametrize("cheat", [*CHEATS, TRIPPER])
def test_every_cheat_ends_below_the_honest_in_every_output(
    everything: Store, pages: Path, cheat: str, rule: str, output: str
) -> None:
    """Below: with a lower score, or, where nothing is decided on what a run lacks, with a range and without a rank."""
    benchmark = f"{'texts' if cheat == TRIPPER else 'counts'}-{rule}"
    found = OUTPUTS[output](everything, benchmark, cheat, pages)
    assert not found.beats_honest
    decided = rule == "strict" or cheat in {"crasher", "refuser"}
    assert (found.score is not None) == decided
    if found.score is not None:
        assert found.score < (0 if output == "compare" else 0.6)
