"""`review.yaml`: all problems at once, each with its location."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor.core import InputError, ProblemsError
from proctor_web.settings import open_store, read_review
from tests.support.web_site import store_in

ROLES = "organiser, reviewer, annotator or adjudicator"
GOOD = """
title: Round one
media: videos
studies:
  - name: questions
    form: question
    items: items.jsonl
    plan: {readings: 2, readers: [anna, ben], adjudicators: [cleo], seed: 1, gold: gold.jsonl}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "videos").mkdir()
    for name in ("items.jsonl", "gold.jsonl"):
        (tmp_path / name).write_text("")
    return tmp_path


def problems(folder: Path, text: str, accounts: dict[str, str] | None = None) -> tuple[str, ...]:
    (folder / "review.yaml").write_text(text)
    with pytest.raises(ProblemsError) as caught:
        read_review(folder, accounts)
    return caught.value.problems


def test_a_review_is_read(folder: Path) -> None:
    (folder / "review.yaml").write_text(GOOD)
    found = read_review(folder, {"anna": "reviewer", "ben": "annotator", "cleo": "adjudicator"})
    assert found.study("questions").plan.readers == ("anna", "ben")
    assert found.study("questions").plan.overlap == 1.0
    with pytest.raises(InputError, match="found 'question', expected one of questions"):
        found.study("question")


def test_what_is_not_there_is_told_all_at_once(folder: Path) -> None:
    text = GOOD.replace("media: videos", "media: films").replace("items.jsonl", "list.jsonl").replace("gold.j", "au.j")
    twice = text + text.partition("studies:\n")[2].replace("questions", "Questions")
    found = problems(folder, twice, {"anna": "reviewer", "ben": "participant"})
    assert found == (
        "studies 2, name: found 'Questions' twice, expected each name once",
        "media: found no folder 'films', expected the folder with the videos",
        "studies 1 (questions), items: found no file 'list.jsonl', expected one in the folder",
        "studies 1 (questions), plan, gold: found no file 'au.jsonl', expected one in the folder",
        "studies 2 (Questions), items: found no file 'list.jsonl', expected one in the folder",
        "studies 2 (Questions), plan, gold: found no file 'au.jsonl', expected one in the folder",
        *(
            line
            for study in ("1 (questions)", "2 (Questions)")
            for line in (
                f"studies {study}, plan, readers: found 'ben', a participant, expected one who is {ROLES}",
                f"studies {study}, plan, adjudicators: found 'cleo', expected an account (proctor serve users add DIR cleo)",
            )
        ),
    )


def test_fields_that_do_not_fit_are_told_all_at_once(folder: Path) -> None:
    found = problems(
        folder,
        """
colour: red
studies:
  - {name: a/b, form: question, items: items.jsonl}
  - {name: b, form: questions, items: items.jsonl}
  - {name: c, form: question, items: items.jsonl, project: p}
  - {name: d, form: question, items: items.jsonl, plan: {readings: 3, readers: [anna, ben]}}
  - {name: e, form: question, items: items.jsonl, plan: {readers: [anna, ben, anna]}}
  - {name: f, form: question, items: items.jsonl, plan: {readers: [anna, ben], adjudicators: [ben]}}
  - {name: g, form: question, benchmark: b}
  - {name: h, form: rating, items: items.jsonl, dimensions: [{name: x, levels: [2, 1]}]}
""",
    )
    assert [line.partition(":")[0] for line in found] == [
        "studies 1, name", "studies 2", "studies 3", "studies 4, plan", "studies 5, plan", "studies 6, plan",
        "studies 7", "studies 8, dimensions 1", "colour",
    ]  # fmt: skip
    assert found[1].startswith("studies 2: found the form 'questions', expected one of question, order, rationale,")
    assert found[2] == "studies 3: one of items, project and benchmark is expected, not items and project"
    assert found[-1].startswith("colour: no field of this name is expected (one of title, ")


def test_no_review_and_broken_yaml_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"review.yaml: found no such file, expected a review"):
        read_review(tmp_path)
    (tmp_path / "review.yaml").write_text("studies: [")
    with pytest.raises(InputError, match=r"review.yaml: line 1"):
        read_review(tmp_path)


@pytest.mark.parametrize("store", [None, "elsewhere.sqlite"])
def test_other_users_of_the_machine_can_not_open_a_new_store(tmp_path: Path, store: str | None) -> None:
    location = None if store is None else str(tmp_path / store)
    open_store(store_in(tmp_path, location)).dispose()
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o007 == 0, "it holds names, readings and hashes of passwords"
    (kept,) = tmp_path.glob("*.sqlite")
    kept.chmod(0o664)
    open_store(store_in(tmp_path, location)).dispose()
    assert kept.stat().st_mode & 0o777 == 0o664, "its owner may say otherwise"


def test_a_new_store_in_a_folder_of_a_group_is_the_groups(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    before = os.umask(0o077)
    try:
        open_store(store_in(tmp_path)).dispose()
    finally:
        os.umask(before)
    assert (tmp_path / "review.sqlite").stat().st_mode & 0o777 == 0o660
