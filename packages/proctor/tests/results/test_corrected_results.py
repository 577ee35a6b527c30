"""A sealed sample, and a judge's scores corrected by its labels: what is computed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import proctor
from proctor.core import Answer, Benchmark, InputError, Item, Metric, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.results import LabelSample, corrected_results, draw_sample, read_sample, write_sample
from proctor.runs import Store
from proctor.stats import corrected_mean, holm
from tests.support.program import proctor as program

GROUPS, PER_GROUP = 40, 3
QUALITY = Metric("quality", "Quality", low=0, high=10)
SHIFT = {"good": 1.0, "fair": 0.6, "bad": 0.0}


def truth() -> dict[tuple[str, str], float]:
    """The label of each answer."""
    rng = np.random.default_rng(11)
    base = rng.normal(5, 1, GROUPS)
    return {
        (f"q{g}-{n}", system): float(np.clip(base[g] + shift + rng.normal(0, 0.5), 0, 10))
        for g in range(GROUPS)
        for n in range(PER_GROUP)
        for system, shift in SHIFT.items()
    }


def judged(seed: int = 12) -> dict[tuple[str, str], float]:
    rng = np.random.default_rng(seed)
    return {key: float(np.clip(value + 2 + rng.normal(0, 0.6), 0, 10)) for key, value in truth().items()}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    items = tuple(
        Item(
            id=f"q{g}-{n}",
            group=f"v{g}",
            question="What?",
            answer=FreeTextFormat(),
            reference=Reference(answer="liver"),
            tags={"site": "north" if g % 2 else "south"},
        )
        for g in range(GROUPS)
        for n in range(PER_GROUP)
    )
    made = Store(tmp_path / "runs.db")
    made.add_benchmark(Benchmark("b", "B", items, (QUALITY,), "quality"))
    for system in SHIFT:
        run = made.start_run("b", system, "video", {"prompt_sha256": "p1"})
        made.write(run, [(Answer(item_id=item.id, text=f"{system} {item.id}"), []) for item in items])
    give(made, "judge", judged())
    return made


def give(store: Store, scorer: str, values: dict[tuple[str, str], float]) -> None:
    for run in store.runs("b"):
        own = [(item, value) for (item, system), value in values.items() if system == run.system]
        store.add_scores(
            run, [Score(item_id=item, metric="quality", value=value, scorer=scorer) for item, value in own]
        )


def label(store: Store, sample: LabelSample, *, without: int = 0) -> dict[tuple[str, str], float]:
    """Labels by two people, half a point apart, of all drawn answers but the first `without`."""
    drawn = {key: value for key, value in truth().items() if f"v{key[0][1:].split('-')[0]}" in sample.drawn}
    some = dict(sorted(drawn.items())[without:])
    give(store, "human:R0", {key: value - 0.25 for key, value in some.items()})
    give(store, "human:R1", {key: value + 0.25 for key, value in some.items()})
    return some


def test_the_sample_is_stratified_sealed_and_repeatable(store: Store, tmp_path: Path) -> None:
    sample = draw_sample(store, "b", "judge", 12, by=["site"], seed=4)
    assert sorted(stratum.name for stratum in sample.strata) == [
        "north: high scores", "north: low scores", "south: high scores", "south: low scores",
    ]  # fmt: skip
    assert [stratum.drawn for stratum in sample.strata] == [3, 3, 3, 3]
    assert {stratum.probability for stratum in sample.strata} == {0.3}
    assert sorted(group for one in sample.strata for group in one.groups) == sorted(f"v{g}" for g in range(GROUPS))
    assert len(sample.drawn) == 12
    assert sample.drawn == draw_sample(store, "b", "judge", 12, by=["site"], seed=4).drawn
    assert sample.drawn != draw_sample(store, "b", "judge", 12, by=["site"], seed=5).drawn
    assert len(sample.anchor) == 12 * PER_GROUP * len(SHIFT)
    write_sample(sample, tmp_path / "sample.json")
    assert read_sample(tmp_path / "sample.json") == sample
    with pytest.raises(InputError, match="a sample is drawn once"):
        write_sample(sample, tmp_path / "sample.json")


def test_small_strata_are_joined_until_each_has_two(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 7, by=["site"])
    assert sum(stratum.drawn for stratum in sample.strata) == 7
    assert min(stratum.drawn for stratum in sample.strata) >= 2


def test_corrected_scores_are_those_of_the_arrays(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12, seed=4)
    labels = label(store, sample)
    found = corrected_results(store, sample)
    scores = {(one.system, one.other): one for one in found.scores}
    assert sorted(scores) == sorted(
        [("bad", ""), ("fair", ""), ("good", ""), ("bad", "fair"), ("bad", "good"), ("fair", "good")]
    )
    assert found.raters == (2, 2)
    judge = judged()
    items = sorted({item for item, _ in judge})
    groups = [f"v{item[1:].split('-')[0]}" for item in items]
    stratum = {group: number for number, one in enumerate(sample.strata) for group in one.groups}
    drawn = [group in sample.drawn for group in groups]
    own = corrected_mean(
        [judge[item, "bad"] - judge[item, "good"] for item in items],
        [labels[item, "bad"] - labels[item, "good"] if (item, "bad") in labels else 0.0 for item in items],
        groups,
        [sample.strata[stratum[group]].probability for group in groups],
        drawn,
        [stratum[group] for group in groups],
    )
    assert scores["bad", "good"].mean == own
    assert own.ci_low <= np.mean([truth()[item, "bad"] - truth()[item, "good"] for item in items]) <= own.ci_high
    pairs = [one for one in found.scores if one.other]
    raw = [one.mean.p for one in pairs if one.mean is not None]
    assert [one.p_holm for one in pairs] == holm(raw).tolist()
    mean = scores["good", ""].mean
    assert mean is not None
    assert mean.judge_alone > mean.ci_high, "the judge alone is two points too high"
    true = float(np.mean([value for (_, system), value in truth().items() if system == "good"]))
    assert mean.ci_low <= true <= mean.ci_high
    assert (mean.n, mean.labelled, mean.groups, mean.drawn) == (120, 36, 40, 12)


def test_hand_picked_labels_are_refused(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    other = next(f"q{g}-0" for g in range(GROUPS) if f"v{g}" not in sample.drawn)
    give(store, "human:R0", {(other, "good"): 9.0})
    with pytest.raises(
        InputError, match=r"found 1 label in 1 group not drawn .*expected labels of the sealed sample only"
    ):
        corrected_results(store, sample)


def test_a_hand_picked_group_is_noticed_also_with_a_new_hash(store: Store, tmp_path: Path) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    other = next(f"v{g}" for g in range(GROUPS) if f"v{g}" not in sample.drawn)
    picked = sample.model_copy(update={"drawn": tuple(sorted({*sample.drawn[1:], other}))})
    file = tmp_path / "picked.json"
    file.write_text(picked.model_dump_json(), "utf-8")
    with pytest.raises(InputError, match="the file was changed after it was sealed"):
        read_sample(file)
    file.write_text(picked.sealed().model_dump_json(), "utf-8")
    with pytest.raises(InputError, match=r"2 groups that seed 0 does not draw.*hand-picked ones prove nothing"):
        read_sample(file)


def test_drawn_answers_without_a_label_are_refused(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    with pytest.raises(InputError, match="found none by people"):
        corrected_results(store, sample)
    label(store, sample, without=2)
    with pytest.raises(InputError, match="found none for 2 drawn answers of 108"):
        corrected_results(store, sample)


def test_labels_before_the_draw_and_too_few_groups_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match=r"found 5 of 40 groups .*expected 6 to 40"):
        draw_sample(store, "b", "judge", 5)
    with pytest.raises(InputError, match="'jugde'"):
        draw_sample(store, "b", "jugde", 12)
    with pytest.raises(InputError, match="did you mean 'site'"):
        draw_sample(store, "b", "judge", 12, by=["sites"])
    label(store, draw_sample(store, "b", "judge", 12))
    with pytest.raises(InputError, match="drawn before anybody labels"):
        draw_sample(store, "b", "judge", 12)


def test_another_judge_version_is_refused(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    settings = {"scorers": {"judge": {"prompt_sha256": "new"}}}
    store.change_card("b", lambda card: card.model_copy(update=settings))
    with pytest.raises(InputError, match=r"judge judge: found another version \(prompt_sha256\)"):
        corrected_results(store, sample)


def test_other_answers_are_refused(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    altered = sample.model_copy(update={"runs": sample.runs | {"good": "0" * 64}})
    with pytest.raises(InputError, match="run good: found other answers, or another prompt or setting"):
        corrected_results(store, altered.sealed())


def test_a_judge_that_drifted_on_the_anchor_set_is_refused_and_one_that_wavers_is_noted(store: Store) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    before = judged()
    rng = np.random.default_rng(0)
    give(store, "judge", {key: value + 0.1 * float(rng.choice([-1, 1])) for key, value in before.items()})
    (note,) = corrected_results(store, sample).notes
    assert note.startswith("The judge was asked again: 108 of 108 scores of the anchor set changed, by ")
    assert note.endswith("no more than chance.")
    give(store, "judge", {key: value - 0.5 for key, value in before.items()})
    with pytest.raises(
        InputError, match=r"108 of 108 scores of the anchor set changed, by −0.500 on average.*has changed"
    ):
        corrected_results(store, sample)


def test_python_and_the_table_say_how_and_what_not(store: Store, tmp_path: Path) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    write_sample(sample, tmp_path / "sample.json")
    table = proctor.corrected(store, tmp_path / "sample.json")
    assert [row["system"] for row in table.rows] == ["bad", "fair", "good", "bad", "bad", "fair"]
    notes = "\n".join(table.notes)
    assert "12 of 40 groups drawn by seed 0" in notes
    assert "2 people for each answer (their mean is the label)" in notes
    assert "Not for another judge or version than judge" in notes
    plan = proctor.corrected(store, tmp_path / "sample.json", plan=True)
    assert [row["drawn"] for row in plan.rows[:5]] == [12, 18, 24, 36, 40]
    assert plan.rows[0]["more_labels"] == 0
    assert plan.rows[1]["more_labels"] == 18
    json.dumps(table.rows)
    with pytest.raises(InputError, match="one that both scored"):
        proctor.corrected(store, tmp_path / "sample.json", dimensions=["style"])


def test_the_command_shows_scores_and_plan_and_refuses(store: Store, tmp_path: Path) -> None:
    sample = draw_sample(store, "b", "judge", 12)
    label(store, sample)
    write_sample(sample, tmp_path / "sample.json")
    given = ["results", "b", "--store", str(tmp_path / "runs.db"), "--corrected", str(tmp_path / "sample.json")]
    shown = program(*given)
    assert shown.returncode == 0, shown.stderr
    assert "Differences, corrected by people" in shown.stdout
    rows = json.loads(program(*given, "--format", "json").stdout)
    assert rows == json.loads(json.dumps(proctor.corrected(store, tmp_path / "sample.json").rows))
    assert "labels saved" in program(*given, "--plan").stdout
    assert "Leave --by, --system and --condition out" in program(*given, "--by", "site").stderr
    alone = program("results", "b", "--store", str(tmp_path / "runs.db"), "--plan")
    assert (alone.returncode, "--plan needs --corrected" in alone.stderr) == (2, True)
