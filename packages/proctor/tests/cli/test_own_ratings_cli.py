"""Own ratings from the shell: what is said of a table, of metrics that were scored before or can't be, and of an audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import proctor

WORDS = ("clip", "duct", "liver", "hook", "node", "vein")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve questions, answers of two systems, two raters; `tom` agrees with `eva` on clarity, and never on tone."""
    questions, ratings = ["id,patient,question,answer"], ["Fall;Modell;Bewerterin;Antwort;Klarheit;Ton"]
    for k in range(12):
        questions.append(f"q{k},p{k},What is seen?,{' '.join(WORDS[(k + j) % 6] for j in range(3))}")
        for s, system in enumerate(("a", "b")):
            right = (k * 5 + s * 3) % 4
            answer = " ".join([WORDS[(k + j) % 6] for j in range(right)] + ["and", "more"])
            for r, rater in enumerate(("eva", "tom")):
                ratings.append(f"q{k};{system};{rater};{answer};{right},5;{(k + r * 3 + s) % 5}")
    (tmp_path / "q.csv").write_text("\n".join(questions) + "\n", encoding="utf-8")
    (tmp_path / "r.csv").write_text("\n".join(ratings) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Path:
    done = proctor("import", folder / "q.csv", folder / "r.csv", "--store", folder / "s.db")
    assert done.returncode == 0, done.stderr
    assert (
        "Columns: item = 'Fall', system = 'Modell', rater = 'Bewerterin', candidate = 'Antwort', dimensions"
        in done.stderr
    )
    assert "Scale: Klarheit 0.5 to 3.5, Ton 0 to 4, as far as the ratings show it" in done.stderr
    assert [line.partition(" in ")[0] for line in done.stdout.splitlines()] == [
        "12 answers with 48 ratings as a / video", "12 answers with 48 ratings as b / video",
    ]  # fmt: skip
    return folder / "s.db"


def test_what_was_scored_before_is_there_already(store: Path) -> None:
    first = proctor("score", "q", "--metric", "rouge-1-best", "--store", store)
    assert "scorer        answers\nrouge-1-best       24" in first.stdout
    again = proctor("score", "q", "--metric", "rouge-1-best", "--metric", "rouge-l-best", "--store", store)
    assert again.returncode == 0, again.stderr
    table = [line.split() for line in again.stdout.splitlines()]
    assert ["scorer", "scored", "now", "there", "already"] in table
    assert ["rouge-1-best", "0", "24"] in table
    assert ["rouge-l-best", "24", "0"] in table


def test_all_metrics_are_scored_without_those_that_need_an_extra(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.metrics.text import MissingExtraError, SimilarityScorer

    see = SimilarityScorer.see

    async def lacks(self: SimilarityScorer, answers: object) -> None:
        if self.name.startswith(("embedding", "bertscore")):
            raise MissingExtraError("it needs the extra 'semantic' (pip install 'proctor-eval[semantic]')")
        await see(self, answers)  # type: ignore[arg-type]

    monkeypatch.setattr(SimilarityScorer, "see", lacks)
    done = proctor("score", "q", "--metric", "all", "--store", store)
    assert done.returncode == 0, done.stderr
    assert (
        "Left out: embedding-best. it needs the extra 'semantic' (pip install 'proctor-eval[semantic]')" in done.stderr
    )
    assert "chrf-mean" in done.stdout
    named = proctor("score", "q", "--metric", "embedding-best", "--store", store)
    assert (named.returncode, "pip install" in named.stderr) == (1, True)


def test_an_audit_begins_with_the_answer(store: Path) -> None:
    proctor("score", "q", "--metric", "rouge-1-best", "--metric", "chrf-best", "--store", store)
    done = proctor("audit", "q", "--store", store, "--draws", "200")
    assert done.returncode == 0, done.stderr
    best, people = done.stdout.splitlines()[:2]
    assert best.startswith("Of 2 metrics ")
    for words in (" agrees best with the raters: mean correlation 0.", "(95 % CI ", "; its lead over ", ", p "):
        assert words in best
    assert best.endswith(("significant.", "either."))
    assert people.startswith("Two raters correlate by ")
    assert "(Ton) to 1.000 (Klarheit) with each other. Where raters hardly agree, as on Ton," in people
    one = proctor("audit", "q", "--store", store, "--scorer", "chrf-best", "--draws", "0")
    assert one.stdout.startswith("Agreement of chrf-best with the raters: mean correlation 0.")


def test_the_number_of_metrics_for_power_is_checked_first(store: Path) -> None:
    proctor(
        "score", "q", "--metric", "rouge-1-best", "--metric", "chrf-best", "--metric", "rouge-l-best", "--store", store
    )
    done = proctor("audit", "q", "--store", store, "--power")
    assert done.returncode == 2
    assert (
        "--power compares two scorers, and here are 3 (chrf-best, rouge-1-best, rouge-l-best). Name two by --scorer."
        in done.stderr
    )


def test_tables_of_an_audit_may_have_names_of_their_own(folder: Path, store: Path) -> None:
    proctor("score", "q", "--metric", "rouge-1-best", "--store", store)
    proctor("export", "q", "--out", folder / "s.csv", "--store", store)
    done = proctor("audit", "--scores", folder / "s.csv", "--ratings", folder / "r.csv", "--draws", "0")
    assert done.returncode == 0, done.stderr
    assert "Agreement of rouge-1-best with the raters" in done.stdout
    text = (folder / "r.csv").read_text("utf-8").replace("Bewerterin", "Wer")
    (folder / "r.csv").write_text(text, encoding="utf-8")
    refused = proctor("audit", "--scores", folder / "s.csv", "--ratings", folder / "r.csv")
    assert "row 1: found no column of the raters among 'Fall', " in refused.stderr
    named = proctor(
        "audit", "--scores", folder / "s.csv", "--ratings", folder / "r.csv", "--map", "rater=Wer", "--draws", "0"
    )
    assert named.returncode == 0, named.stderr
    alone = proctor("audit", "--scores", folder / "s.csv")
    assert "--scores also needs --ratings FILE." in alone.stderr


def test_an_audit_without_ratings_says_how_they_come_in(folder: Path) -> None:
    (folder / "a.csv").write_text("id,answer\nq0,duct\n", encoding="utf-8")
    proctor("import", folder / "q.csv", folder / "a.csv", "--name", "a", "--store", folder / "n.db")
    done = proctor("audit", "q", "--store", folder / "n.db")
    assert "has no ratings of q by people. Import them: proctor import q RATINGS.csv --store " in done.stderr
    assert "Or name a scorer instead: --against NAME" in done.stderr
