"""What a file that somebody asked for may replace: an earlier one of its kind, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import proctor
from proctor.core import PAGES, InputError, output_file
from tests.support.program import proctor as shell

QUESTIONS = "id,question,answer,patient\n" + "".join(f"q{n},Is it on?,yes,p{n}\n" for n in range(3))
OTHER = "expected another name for the file to write"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with questions and a store of their answers."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "tiny.csv").write_text(QUESTIONS)
    done = shell("run", folder / "tiny.csv", "--system", "random", "--store", folder / "s.db")
    assert done.returncode == 0, done.stderr
    return folder


def refused(out: Path, why: str, *arguments: str | Path) -> None:
    """That a command is refused in one line, and leaves the file alone."""
    before = out.read_bytes()
    done = shell(*arguments, "--out", out)
    lines = [line for line in done.stderr.splitlines() if line.startswith("proctor: ")]
    assert (done.returncode, lines) == (1, [f"proctor: {out}: found {why}"])
    assert out.read_bytes() == before


ENDINGS = {
    "jsonl": ".jsonl or .ndjson",
    "csv": ".csv or .txt",
    "parquet": ".parquet",
    "sums": ".json",
    "inspect": ".eval or .json",
    "hf-eval": ".yaml or .yml",
    "model-card": ".md",
}


@pytest.mark.parametrize("form", ["", *ENDINGS])
def test_a_report_and_every_export_leave_store_questions_and_programs_alone(asked: Path, form: str) -> None:
    store = ("tiny", "--store", asked / "s.db")
    command = ("export", *store, "--format", form) if form else ("report", *store)
    read = f"a file that this command reads, {OTHER}"
    refused(asked / "s.db", read, *command)
    refused(asked / "tiny.csv", read, *command)
    other = asked / "other.db"
    other.write_bytes((asked / "s.db").read_bytes())
    refused(other, f"a database, {OTHER}", *command)
    program = asked / "mine.py"
    program.write_text("print(1)\n")
    ends = ENDINGS.get(form, ".html or .htm")
    refused(program, f"a file of another kind, expected another name: what is replaced ends in {ends}", *command)
    assert shell("results", *store).returncode == 0


@pytest.mark.parametrize("form", ["judgements", "croissant", "unresolved", "every-eval-ever"])
def test_no_other_export_replaces_the_store(asked: Path, form: str) -> None:
    command = ("export", "tiny", "--store", asked / "s.db", "--format", form)
    refused(asked / "s.db", f"a file that this command reads, {OTHER}", *command)


def test_an_earlier_output_of_the_same_kind_is_replaced(asked: Path, tmp_path: Path) -> None:
    store = ("tiny", "--store", asked / "s.db")
    outputs: list[tuple[str, tuple[str | Path, ...]]] = [
        ("a.html", ("report", *store)),
        ("A.HTM", ("report", *store)),
        ("a.csv", ("export", *store)),
        ("a.jsonl", ("export", *store)),
        ("a.parquet", ("export", *store)),
        ("a.json", ("export", *store, "--format", "sums")),
        ("a.yaml", ("export", *store, "--format", "hf-eval")),
        ("a.html", ("check", asked / "tiny.csv")),
    ]
    for name, command in outputs:
        (tmp_path / name).write_text("earlier")
        done = shell(*command, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes() != b"earlier"


def test_a_check_leaves_the_questions_alone(asked: Path) -> None:
    why = "a file of another kind, expected another name: what is replaced ends in .html or .htm"
    refused(asked / "tiny.csv", why, "check", asked / "tiny.csv")


def test_links_and_other_names_of_a_file_are_that_file(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = f"a file that this command reads, {OTHER}"
    command = ("export", "tiny", "--store", asked / "s.db", "--format", "csv")
    links = asked / "links"
    links.mkdir()
    (links / "soft.csv").symlink_to(asked / "tiny.csv")
    os.link(asked / "tiny.csv", links / "hard.csv")
    refused(links / "soft.csv", read, *command)
    refused(links / "hard.csv", read, *command)
    refused(links / ".." / "tiny.csv", read, *command)
    monkeypatch.chdir(asked)
    refused(Path("tiny.csv"), read, *command)
    refused(Path("s.db"), read, "export", "tiny", "--store", "sqlite:///s.db", "--format", "csv")
    done = shell(*command, "--out", "s.db-wal")
    assert done.stderr == f"proctor: s.db-wal: found {read}\n"


def test_the_questions_of_a_folder_are_kept_and_what_else_lies_there_is_replaced(tmp_path: Path) -> None:
    folder, store = tmp_path / "mine", tmp_path / "s.db"
    folder.mkdir()
    (folder / "questions.csv").write_text(QUESTIONS)
    (folder / "benchmark.yaml").write_text("title: Mine\n")
    assert shell("run", folder, "--system", "random", "--store", store).returncode == 0
    read = f"a file that this command reads, {OTHER}"
    refused(folder / "questions.csv", read, "export", folder, "--store", store)
    refused(folder / "benchmark.yaml", read, "export", folder, "--store", store, "--format", "hf-eval")
    for _ in range(2):
        done = shell("export", folder, "--store", store, "--out", folder / "answers.csv")
        assert done.returncode == 0, done.stderr


def test_python_is_told_the_same(asked: Path) -> None:
    store = asked / "s.db"
    before = store.read_bytes()
    for write in (proctor.report, proctor.export):
        with pytest.raises(InputError, match=f"s.db: found a file that this command reads, {OTHER}"):
            write(store, out=store)
    with pytest.raises(InputError, match="found a file of another kind"):
        proctor.check(asked / "tiny.csv", out=asked / "tiny.csv")
    assert store.read_bytes() == before


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=f"found something that is no file, {OTHER}"):
        output_file(pipe, PAGES)
