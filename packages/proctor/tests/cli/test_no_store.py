"""A store that is not there, or is empty of what is asked for: commands that read say so, and make none."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor as python
from proctor.core import InputError
from proctor.runs import Store
from tests.support.program import proctor

READERS = [
    "results toy", "compare toy", "analyze toy", "rank toy", "rank toy --metric accuracy", "show toy", "show toy q1",
    "report toy --out page.html", "export toy --out sums.json --format sums", "reproduce toy", "score toy --judge rouge",
    "audit toy", "list runs", "list metrics", "judge fit toy --method choice --out choice.json", "judge compare toy",
    "judge compare toy --model openai:m", "train generative-judge toy --base weights --out judge",
    "train classifier-judge toy --out classifier", "audit items toy", "check store", "store change rename toy --system a --to b",
    "store change delete toy --all --yes", "import toy open.csv --decided-by anna", "worker --once",
    "store change disqualify toy --system a --reason told",
    "import mediqa-eval ratings.csv --scorer human:anna",
]  # fmt: skip


@pytest.mark.parametrize("words", READERS)
def test_what_reads_a_store_makes_none(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("open.csv", "ratings.csv"):
        (tmp_path / name).write_text("item,system,value\nq1,a,1\n")
    (tmp_path / "weights").mkdir()
    before = sorted(tmp_path.iterdir())
    done = proctor(*words.split(), "--store", "mistyped.db")
    assert (done.returncode, done.stdout) == (1, ""), done.stdout
    assert "mistyped.db: found no such file, expected a store" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("function", ["results", "compare", "rank", "analyze", "report", "export"])
def test_functions_that_read_make_none(function: str, tmp_path: Path) -> None:
    more = {"report": {"out": tmp_path / "page.html"}, "export": {"out": tmp_path / "out.json"}}.get(function, {})
    with pytest.raises(InputError, match=r"mistyped\.db: found no such file, expected a store"):
        getattr(python, function)(tmp_path / "mistyped.db", benchmark="toy", **more)
    assert list(tmp_path.iterdir()) == []


def test_merge_reads_stores_that_are_there(tmp_path: Path) -> None:
    done = proctor("store", "merge", tmp_path / "mistyped.db", "--store", tmp_path / "all.db")
    assert (done.returncode, "mistyped.db: found no such file" in done.stderr) == (1, True)
    assert not (tmp_path / "mistyped.db").exists()


@pytest.mark.parametrize("sources", [("mistyped.db",), ("there.db", "mistyped.db"), ("there.db", "there.db")])
def test_a_merge_that_takes_nothing_leaves_no_store(sources: tuple[str, ...], tmp_path: Path) -> None:
    Store(tmp_path / "there.db").close()
    done = proctor("store", "merge", *(tmp_path / one for one in sources), "--store", tmp_path / "new.db")
    assert done.returncode == 1
    assert "found no such file, expected a store\n" in done.stderr or "found the store twice" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["there.db"]


def test_a_merge_that_takes_nothing_leaves_the_store_that_was_there(tmp_path: Path) -> None:
    for name in ("there.db", "old.db"):
        Store(tmp_path / name).close()
    done = proctor("store", "merge", *[tmp_path / "there.db"] * 2, "--store", tmp_path / "old.db")
    assert done.returncode == 1
    assert (tmp_path / "old.db").exists()


def test_where_no_store_was_named_the_option_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    done = proctor("results", "toy")
    assert done.stderr == "proctor: proctor.db: found no such file, expected a store (name it with --store)\n"


def test_a_store_among_the_sums_of_sites_is_called_one(tmp_path: Path) -> None:
    Store(tmp_path / "runs.db").close()
    done = proctor("results", "--pool", tmp_path / "runs.db")
    expected = "found a store, expected sums of groups (proctor export --format sums)"
    assert (done.returncode, done.stderr) == (1, f"proctor: {tmp_path / 'runs.db'}: {expected}\n")
