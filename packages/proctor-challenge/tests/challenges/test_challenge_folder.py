"""A challenge's folder: who gets which questions, and what is told before a phase opens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError, question_writer
from proctor_challenge.challenge import SealedPart
from proctor_challenge.folder import NewChallenge, check_challenge, new_challenge
from proctor_challenge.settings import read_challenge
from tests.support.challenge_data import focus_answers, focus_data
from tests.support.program import proctor


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return focus_data(tmp_path_factory.mktemp("data") / "focus")


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    new_challenge(tmp_path / "c", NewChallenge("focus", data, training=2, pre_evaluation=2, test=4))
    return tmp_path / "c"


def groups(sealed: SealedPart, phase: str) -> set[str]:
    return {item.group for item in sealed.benchmark(phase).items}


def test_groups_are_dealt_to_phases_and_references_stay_sealed(folder: Path, data: Path) -> None:
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    parts = [groups(sealed, name) for name in ("training", "pre-evaluation", "test")]
    assert [len(one) for one in parts] == [2, 2, 4]
    assert len(set.union(*parts)) == 8
    assert (folder / "sealed").stat().st_mode & 0o777 == 0o700
    public = sorted(str(one.relative_to(folder)) for one in (folder / "public").rglob("*.json"))
    assert public == [
        *("public/pre-evaluation/requests.json", "public/training/references.json", "public/training/requests.json")
    ]
    blind = json.loads((folder / public[0]).read_text())
    assert {field for one in blind for field in one} == {
        *("qID", "videoID", "start_time", "end_time", "procedure_type", "question", "answer_format")
    }
    assert sealed.handed_out("test") is None


def test_what_is_handed_out_are_the_questions_that_are_scored(folder: Path) -> None:
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    given, scored = sealed.handed_out("pre-evaluation"), sealed.benchmark("pre-evaluation")
    assert given is not None
    assert [(one.id, one.question, one.answer.kind) for one in given.items] == [
        (one.id, one.question, one.answer.kind) for one in scored.items
    ]
    assert not any(one.reference for one in given.items)
    assert all(one.reference for one in scored.items)
    assert scored.budget_s == 30.0


def test_media_go_with_their_phase(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "videos").mkdir()
    for video in range(8):
        (tmp_path / "videos" / f"v{video:02d}.mp4").write_bytes(f"video {video}".encode())
    monkeypatch.chdir(tmp_path)
    plan = NewChallenge("focus", data, Path("videos"), training=1, pre_evaluation=2, test=3)
    new_challenge(Path("c"), plan)
    sealed = SealedPart(Path("c"), read_challenge(Path("c"), sealed=True))
    for name, row in (("training", "public"), ("pre-evaluation", "public"), ("test", "sealed")):
        there = {one.stem for one in Path("c", row, name, "media").iterdir()}
        assert there == groups(sealed, name)
    assert not any(one.suffix == ".mp4" for one in Path("c/sealed/pre-evaluation").rglob("*"))
    assert check_challenge(Path("c")).problems == ()
    hidden = next(Path("c/sealed/test/media").iterdir())
    (Path("c/public") / "copy.mp4").write_bytes(hidden.read_bytes())
    (problem,) = check_challenge(Path("c")).problems
    assert problem.startswith("test: found public/copy.mp4, which is sealed/test/media/")
    hidden.unlink()
    assert check_challenge(Path("c")).problems == (
        f"test: {hidden.stem}: found no file of this name, expected its media",
    )


def test_the_same_seed_deals_the_same_groups(data: Path, tmp_path: Path) -> None:
    def dealt(name: str, seed: int) -> set[str]:
        new_challenge(tmp_path / name, NewChallenge("focus", data, test=4, seed=seed))
        return groups(SealedPart(tmp_path / name, read_challenge(tmp_path / name, sealed=True)), "test")

    assert dealt("a", 1) == dealt("b", 1) != dealt("c", 2)


def test_without_numbers_half_is_for_the_test(data: Path, tmp_path: Path) -> None:
    found = new_challenge(tmp_path / "c", NewChallenge("focus", data))
    assert found == {"training": 40, "pre-evaluation": 40, "test": 80}


def test_too_few_groups(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found 8 groups, expected groups for 9 in 3 phases"):
        new_challenge(tmp_path / "c", NewChallenge("focus", data, test=9))
    assert not (tmp_path / "c").exists()


def test_a_new_folder_has_no_problems(folder: Path) -> None:
    found = check_challenge(folder)
    assert found.problems == ()
    assert found.facts[1] == "pre-evaluation: 40 questions in 2 groups, hidden, handed out without references"


def edited(file: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def reworded(content: Any) -> None:
    content[0]["question"] = "Is it?"


def shortened(content: Any) -> None:
    del content[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [(reworded, "found other words, options, format or media handed out"), (shortened, "found it not handed out")],
)
def test_questions_that_differ_are_found(folder: Path, change: Callable[[Any], None], told: str) -> None:
    edited(folder / "public/pre-evaluation/requests.json", change)
    assert [told in one for one in check_challenge(folder).problems] == [True]


def test_references_in_the_public_part_are_found(folder: Path) -> None:
    for name in ("pre-evaluation", "test"):
        keys = (folder / f"sealed/{name}/references.json").read_bytes()
        (folder / "public/pre-evaluation" / ("references.json" if name == "pre-evaluation" else "x.bin")).write_bytes(
            keys
        )
    problems = check_challenge(folder).problems
    assert sum("its reference handed out" in one for one in problems) == 3
    assert problems[3] == "pre-evaluation: and 37 more of the same"
    assert problems[4].startswith("test: found public/pre-evaluation/x.bin, which is sealed/test/references.json")


def test_rights_and_links_are_looked_at(folder: Path) -> None:
    (folder / "sealed").chmod(0o755)
    (folder / "public" / "way").symlink_to(folder / "sealed")
    first, second = check_challenge(folder).problems
    assert first == "sealed/: found mode 0755, expected 0700: the scorer's user alone may open it"
    assert second == "public/way: found a symbolic link, expected a file of its own"


def test_baselines_are_read(folder: Path) -> None:
    settings = folder / "challenge.yaml"
    entry = "baselines:\n- name: plain\n  answers: {pre-evaluation: sealed/plain.json}\n"
    settings.write_text(settings.read_text().replace("baselines: []\n", entry))
    sealed = folder / "sealed"
    focus_answers(folder / "public/pre-evaluation", sealed / "pre-evaluation", sealed / "plain.json", 0.5)
    assert check_challenge(folder).problems == ()
    (sealed / "plain.json").write_text("{")
    assert [one.startswith("pre-evaluation: baseline plain:") for one in check_challenge(folder).problems] == [True]


def test_free_text_needs_a_judge(folder: Path) -> None:
    for part in ("public/training", "sealed/test"):
        edited(
            folder / part / "references.json", lambda content: content[0].update(format="open_ended", answer="there")
        )
    told = "found 1 question in free text and no judge, expected one with its models (judge: …)"
    assert check_challenge(folder).problems == (f"training: {told}", f"test: {told}")
    settings = folder / "challenge.yaml"
    settings.write_text(settings.read_text() + "judge: {models: ['openai:one']}\n")
    assert check_challenge(folder).problems == ()


def test_a_commitment_is_keyed_and_follows_what_is_scored(folder: Path) -> None:
    def commitment() -> str:
        return SealedPart(folder, read_challenge(folder, sealed=True)).commitment("test")

    first = commitment()
    assert first == commitment()
    assert (folder / "sealed/commitment.key").stat().st_mode & 0o777 == 0o600
    edited(
        folder / "sealed/test/references.json",
        lambda content: content[0].update(clinical=False, answer="yes", ood=True),
    )
    second = commitment()
    settings = folder / "challenge.yaml"
    settings.write_text(settings.read_text().replace("attempted: 3", "attempted: 4"))
    assert commitment() == second
    settings.write_text(settings.read_text().replace("counts: last", "counts: best"))
    assert commitment() != second
    (folder / "sealed/commitment.key").write_bytes(b"k" * 32)
    assert len({first, second, commitment()}) == 3


def test_the_commands(data: Path, tmp_path: Path) -> None:
    made = proctor("challenge", "new", tmp_path / "c", "focus", "--data", data, "--test", "3")
    assert (made.returncode, made.stdout) == (0, "test: 60 questions\n")
    checked = proctor("challenge", "check", tmp_path / "c")
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "Nothing is wrong.")
    (tmp_path / "c/sealed").chmod(0o750)
    assert proctor("challenge", "check", tmp_path / "c").returncode == 1


def test_a_benchmark_that_can_not_write_its_questions_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found questions to hand out, expected files written by hand"):
        question_writer("simulated", tmp_path)
