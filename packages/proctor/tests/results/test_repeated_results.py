"""Results of runs whose items were answered several times, by hand: what was not asked, and scores of later repetitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import proctor
from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, InputError, Item, Metric, Reference, Score, Status
from proctor.core.formats import BinaryFormat
from proctor.results import Options, load_items, read_pilot, results, status_counts
from proctor.results.results import Result
from proctor.runs import Store

RIGHT, WRONG, FAILED, NOT_ASKED = 1.0, 0.0, Status.FAILED, None
Given = float | Status | None


def stored(
    path: Path,
    rows: list[list[Given]],
    *,
    scorer: str = "code",
    unscored: tuple[int, ...] = (),
    in_group: int = 1,
    asked: int = 0,
) -> Store:
    """A run of as many items as there are rows (groups of `in_group`), each with what became of its repetitions; no scores
    in the repetitions `unscored`. `asked` repetitions were asked for, by default all."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number // in_group}",
            question="?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
        )
        for number in range(len(rows))
    )
    store = Store(path / "runs.db")
    store.add_benchmark(Benchmark("toy", "Toy", items, (ACCURACY,), "accuracy"))
    return with_run(store, "model", rows, scorer=scorer, unscored=unscored, asked=asked)


def with_run(
    store: Store,
    system: str,
    rows: list[list[Given]],
    *,
    scorer: str = "code",
    unscored: tuple[int, ...] = (),
    asked: int = 0,
) -> Store:
    run, items = store.start_run("toy", system, "video", {"repeats": asked or len(rows[0])}), store.items("toy")
    for repetition in range(len(rows[0])):
        written: list[tuple[Answer, list[Score]]] = []
        for item, row in zip(items, rows, strict=True):
            given = row[repetition]
            if given is None:
                continue
            if isinstance(given, Status):
                failed = Answer(item_id=item.id, repetition=repetition, status=given, reason="HTTP 500")
                written.append((failed, []))
                continue
            score = Score(item_id=item.id, repetition=repetition, metric="accuracy", value=given, scorer=scorer)
            said = Answer(item_id=item.id, repetition=repetition, text="yes", parsed=given == RIGHT)
            written.append((said, [] if repetition in unscored else [score]))
        store.write(run, written)
    return store


def row_of(store: Store, policy: FailedPolicy | None = None) -> Result:
    (row,) = results(store, "toy", Options(failed=policy)).rows
    return row


def test_a_repetition_that_the_run_did_not_come_to_makes_it_incomplete(tmp_path: Path) -> None:
    store = stored(tmp_path, [[RIGHT, RIGHT, RIGHT], [RIGHT, WRONG, NOT_ASKED], [WRONG, RIGHT, NOT_ASKED]])
    row = row_of(store)
    assert row.missing == 2
    # excluded: 1, 1/2, 1/2 of 3 items; wrong: 1, 1/3, 1/3
    assert row.if_excluded == pytest.approx(2 / 3)
    assert row.if_wrong == pytest.approx(5 / 9)
    assert row_of(store, FailedPolicy.WRONG).value == pytest.approx(5 / 9)


def test_a_whole_repetition_that_was_never_begun_is_missing_for_each_item(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, NOT_ASKED], [WRONG, NOT_ASKED]]))
    assert (row.missing, row.if_excluded, row.if_wrong) == (2, 0.5, 0.25)


def test_a_repetition_that_failed_counts_as_one_of_them(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, FAILED], [RIGHT, RIGHT]]))
    assert (row.failed, row.if_excluded, row.if_wrong) == (1, 1.0, 0.75)


def test_a_complete_run_has_one_number(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, WRONG], [RIGHT, RIGHT]]))
    assert (row.value, row.missing, row.failed, row.policy) == (0.75, 0, 0, "")


def test_scores_of_a_later_repetition_alone_are_shown(tmp_path: Path) -> None:
    store = stored(tmp_path, [[RIGHT, RIGHT], [RIGHT, WRONG]], scorer="judge", unscored=(0,))
    (row,) = [one for one in results(store, "toy").rows if one.scorer == "judge"]
    assert (row.value, row.unscored) == (0.5, 2)


LATE, REFUSED, ABSTAINED = Status.TIMED_OUT, Status.REFUSED, Status.ABSTAINED


def test_how_answers_ended_is_counted_over_all_repetitions(tmp_path: Path) -> None:
    """By hand, of 4 items with 3 repetitions: 12 answers, of which 2 failed, 1 was not asked, and 9 are there."""
    rows: list[list[Given]] = [
        [RIGHT, REFUSED, LATE],
        [WRONG, RIGHT, REFUSED],
        [RIGHT, FAILED, NOT_ASKED],
        [FAILED, ABSTAINED, RIGHT],
    ]
    store = stored(tmp_path, rows)
    row = row_of(store)
    assert (row.n, row.groups, row.repetitions) == (4, 4, 3)
    counted = (row.answered, row.failed, row.missing, row.refused, row.timed_out, row.abstained, row.unsupported)
    assert counted == (9, 2, 1, 2, 1, 1, 0)
    assert row.answered + row.failed + row.missing == row.n * row.repetitions
    card = store.card("toy")
    ended = status_counts(store, store.runs("toy")[0], load_items(store, card))
    kept = {name: count for name, count in ended.items() if count}
    assert kept == {"readable": 5, "refused": 2, "timed_out": 1, "failed": 2, "not_asked": 1, "abstained": 1}
    (shown,) = results(store, "toy").to_json()
    assert (shown["repetitions"], shown["refused"]) == (3, 2)


def test_counts_are_those_of_each_repetition_read_as_a_run_of_its_own(tmp_path: Path) -> None:
    """An oracle: the same answers as runs with one repetition each, whose counts are added."""
    rng = np.random.default_rng(4)
    choices: list[Given] = [RIGHT, WRONG, FAILED, LATE, REFUSED, ABSTAINED, Status.ERROR, NOT_ASKED]
    names = ("answered", "failed", "missing", "refused", "timed_out", "abstained", "error", "unreadable", "unscored")
    for number in range(4):
        rows = [[choices[k] for k in rng.integers(0, len(choices), 3)] for _ in range(6)]
        (tmp_path / str(number)).mkdir()
        whole = row_of(stored(tmp_path / str(number), rows))
        added = dict.fromkeys(names, 0)
        for repetition in range(3):
            (tmp_path / f"{number}-{repetition}").mkdir()
            found = results(
                stored(tmp_path / f"{number}-{repetition}", [[row[repetition]] for row in rows]), "toy"
            ).rows
            for name in names:
                added[name] += sum(getattr(one, name) for one in found) if found else (6 if name == "missing" else 0)
        assert {name: getattr(whole, name) for name in names} == added


def test_answers_beyond_those_asked_for_count_and_lack_nothing(tmp_path: Path) -> None:
    """Two of four items were answered a third time before only two repetitions were asked for."""
    store = stored(
        tmp_path,
        [[RIGHT, WRONG, RIGHT], [RIGHT, REFUSED, REFUSED], [RIGHT, RIGHT, None], [WRONG, WRONG, None]],
        asked=2,
    )
    row = row_of(store)
    assert (row.answered, row.missing, row.refused, row.repetitions) == (10, 0, 2, 3)
    items = load_items(store, store.card("toy"))
    assert status_counts(store, store.runs("toy")[0], items)["not_asked"] == 0


def test_levels_are_counted_over_all_repetitions(tmp_path: Path) -> None:
    """A metric with named levels: the numbers of answers at each, in all repetitions."""
    grade = Metric("grade", "Grade", low=0.0, high=2.0, levels=("good", "fair", "poor"))
    item = Item(id="q", group="v", question="?", answer=BinaryFormat(), reference=Reference(answer=True))
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(Benchmark("toy", "Toy", (item,), (grade,), "grade"))
    run = store.start_run("toy", "model", "video", {"repeats": 3})
    for repetition, (level, value) in enumerate((("good", 2.0), ("poor", 0.0), ("good", 2.0))):
        said = Answer(item_id="q", repetition=repetition, text="yes", parsed=True)
        score = Score(item_id="q", repetition=repetition, metric="grade", value=value, scorer="j", label=level)
        store.write(run, [(said, [score])])
    assert row_of(store).levels == {"good": 2, "poor": 1}


FIRST: list[list[Given]] = [[RIGHT, RIGHT], [RIGHT, WRONG], [RIGHT, RIGHT], [WRONG, WRONG]]


@pytest.mark.parametrize(
    ("second", "parts"),
    [
        # differences of means 1, 1/2, 1/2, 0: within groups 1/8, between them 1/4. Single answers vary by 1/8 in each run,
        # means of two by half of that, so that nothing is left for the items.
        ([[WRONG, WRONG], [WRONG, WRONG], [RIGHT, WRONG], [WRONG, WRONG]], (1 / 16, 0.0, 1 / 4)),
        # differences 1, 1/2, 0, 0: within 1/16, between 9/16; single answers are as noisy as the other run's
        ([[WRONG], [WRONG], [RIGHT], [WRONG]], (1 / 4, 0.0, 1 / 4)),
    ],
)
def test_a_pilot_with_repetitions_says_how_single_answers_vary(
    second: list[list[Given]], parts: tuple[float, ...], tmp_path: Path
) -> None:
    store = with_run(stored(tmp_path, FIRST, in_group=2), "other", second)
    found = read_pilot(store, "toy", ("model", "other"))
    assert (found.parts.group, found.parts.item, found.parts.repetition) == pytest.approx(parts)
    assert found.repetitions == (2, len(second[0]))
    with pytest.raises(InputError, match="found a pilot with repetitions"):
        read_pilot(store, "toy", ("model", "other"), sd_repetition=10)
    once, often = (
        proctor.plan(store, systems=("model", "other"), margin=3, repeats=again).rows[0] for again in (1, 50)
    )
    assert once["groups"] > often["groups"]
