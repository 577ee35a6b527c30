"""What somebody with a handful of questions on three clips is told: that nothing can differ, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor
from proctor.runs import Store
from proctor.stats import fewest_groups, least_p
from tests.support.program import proctor as shell

EVERY = [
    ("yes", "binary"), ("0:02", "time"), ("0:01-0:03", "interval"), ("liver", "short text"), ("3", "scale"),
    ('"100,100,200,200"', "box"), ("8 cm", "number"), ("It moves.", "free text"),
]  # fmt: skip


def store(folder: Path, groups: int) -> Path:
    """Two functions' answers to one question of each format on so many patients."""
    rows = [f"q{p}-{n},What?,{answer},{kind},p{p}" for p in range(groups) for n, (answer, kind) in enumerate(EVERY)]
    (folder / "questions.csv").write_text("\n".join(["id,question,answer,format,patient", *rows]))
    (folder / "mine.py").write_text("def good(item):\n    return item.answer.write(item.reference.answer)\n")
    benchmark, path = proctor.load(folder), folder / "own.db"
    for name in ("one", "two"):
        proctor.run(
            benchmark, lambda question: "Answer: yes", name=name, conditions="text-only", store=path, baselines=False
        )
    return path


def test_the_smallest_p_and_the_groups_that_it_takes() -> None:
    """2 of the 2³ sign patterns of three groups are as far off as can be; six groups have 64."""
    assert (least_p(3), least_p(5), least_p(6)) == (2 / 8, 2 / 32, 2 / 64)
    assert (fewest_groups(0.05), fewest_groups(0.01)) == (6, 8)
    even, odd = [1.0] * 6, [0.0] * 6
    assert proctor.stats.paired_difference(even, odd, list("abcdef")).p == least_p(6)
    assert proctor.stats.paired_difference(even[:3], odd[:3], list("abc")).p == least_p(3)


@pytest.mark.parametrize(("groups", "told"), [(3, True), (6, False)])
def test_the_first_screen_says_when_groups_are_too_few(groups: int, told: bool, tmp_path: Path) -> None:
    made = store(tmp_path, groups)
    first, *_ = proctor.report(made, tmp_path / "r.html").story.answers
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    line = "With 3 groups no difference between systems or conditions can be significant, whatever they answer: the "
    assert (first.question == "Are there enough groups to tell?") is told
    assert (line in first.answer) is told
    assert ("It takes at least 6 groups" in page) is told
    assert f"Accuracy is known for {7 * groups} of these items, in {groups} groups." in page
    for command in ("results", "compare"):
        done = shell(command, tmp_path.name, "--store", made)
        assert done.returncode == 0, done.stderr
        assert ("It takes at least 6 groups" in done.stderr.replace("\n", " ")) is told


def test_metrics_of_a_few_items_are_named_and_shown_where_they_are_asked_for(tmp_path: Path) -> None:
    made = store(tmp_path, 1)
    done = shell("results", tmp_path.name, "--store", made)
    assert "Accuracy" in done.stdout
    assert "Recall at IoU" not in done.stdout
    assert "Of fewer than 10 items, not shown (--metric NAME): iou, recall_at_0.3" in done.stderr
    assert "Intersection over union" in shell("results", tmp_path.name, "--store", made, "--metric", "iou").stdout
    assert '"iou"' in shell("results", tmp_path.name, "--store", made, "--format", "json").stdout


def test_python_prints_what_the_shell_does(tmp_path: Path) -> None:
    made = store(tmp_path, 1)
    for table in (proctor.results(made), proctor.compare(made)):
        assert "Accuracy" in str(table)
        assert "Recall at IoU" not in str(table)
        assert "Of fewer than 10 items, not shown (metrics=): " in str(table)
        assert "It takes at least 6 groups" in str(table)
        assert {"iou", "recall_at_0.3"} <= {row["metric"] for row in table.rows}
    assert "Intersection over union" in str(proctor.results(made, metrics="iou"))


def test_two_systems_under_one_condition_are_compared_without_naming_them(tmp_path: Path) -> None:
    """It was refused, with a line on conditions."""
    done = shell("compare", tmp_path.name, "--store", store(tmp_path, 2))
    assert "one / text-only minus two / text-only 0.0 pts" in done.stdout
    named = shell("compare", tmp_path.name, "--store", tmp_path / "own.db", "--system", "one")
    assert named.returncode == 1
    assert "Only one / text-only matches; compare needs two runs." in named.stderr


def test_named_systems_are_compared_under_the_one_condition_that_they_share(tmp_path: Path) -> None:
    made = store(tmp_path, 2)
    proctor.run(
        proctor.load(tmp_path),
        lambda question: "Answer: no",
        name="three",
        conditions="text-only",
        store=made,
        baselines=False,
    )
    kept = Store(made, create=False)
    answers = list(kept.answers(next(run for run in kept.runs(tmp_path.name) if run.system == "one")).values())
    for name in ("two", "three"):
        kept.write(kept.start_run(tmp_path.name, name, "black", {}), [(one, []) for one in answers])
    kept.close()
    named = [word for name in ("one", "two", "three") for word in ("--system", name)]
    done = shell("compare", tmp_path.name, "--store", made, *named)
    assert done.returncode == 0, done.stderr
    pairs = ("one / text-only minus two", "one / text-only minus three", "two / text-only minus three")
    assert all(f"{pair} / text-only" in done.stdout for pair in pairs)
    assert "black" not in done.stdout


def test_answers_in_free_text_say_that_a_judge_has_to_score_them(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("id,question,answer,patient\nq1,What?,It moves on.,p\nq2,On?,yes,p\n")
    made = proctor.run(tmp_path, lambda question: "yes", name="me", conditions="text-only", store=tmp_path / "s.db")
    assert made.done[1] == (
        f"1 question in free text: a judge has to score the answers (proctor score {made.benchmark} --model PROVIDER:MODEL "
        f"--judge three-level --store {made.store.shown})"
    )
    done = shell("score", made.benchmark, "--store", tmp_path / "s.db")
    assert "Nothing to score with. Give --metric (rouge-l; all), --judge (bertscore) or --model" in done.stderr


def test_an_argument_too_many_is_told_that_options_have_names() -> None:
    done = shell("show", "mine", "q1", "gpt")
    assert (done.returncode, "Too many arguments: gpt. Options have names, such as --system NAME" in done.stderr) == (
        2,
        True,
    )
