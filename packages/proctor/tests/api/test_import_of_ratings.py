"""People's ratings of one's own questions: from a table into a store, beside metrics, with scipy's figures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

import proctor
from proctor.core import InputError, UsageError, generator
from proctor.runs import Store

WORDS = ["apêndice", "cálculo", "drenagem", "febre", "hérnia", "incisão", "lâmina", "pinça", "sutura", "trocarte"]
METRIC = '''"""Métricas próprias."""


def sobreposicao(text, reference):
    """Parte das palavras da referência que a resposta tem."""
    words = set(reference.split())
    return len(words & set(text.split())) / len(words)


def quebrada(text):
    return 1 / 0


def longa(text):
    return len(text)


def estranha(words):
    return 1
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """24 questions in Portuguese in 12 groups, three systems' answers, and two raters on two dimensions. `erros` is
    better low."""
    rng = generator(7, "import of ratings")
    references = {f"c{k:02d}": [str(word) for word in rng.choice(WORDS, 4, replace=False)] for k in range(24)}
    with (tmp_path / "perguntas.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "paciente", "pergunta", "resposta correta"])
        out.writerows(
            [name, f"p{k // 2}", f"O que se vê no caso {k}?", " ".join(some)]
            for k, (name, some) in enumerate(references.items())
        )
    with (tmp_path / "avaliacoes.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, delimiter=";")
        out.writerow(["caso", "sistema", "avaliador", "resposta", "clareza", "erros"])
        for name, some in references.items():
            for system in ("alfa", "beta", "gama"):
                right = int(rng.integers(0, 5))
                text = " ".join([*some[:right], *rng.choice(WORDS, 3)])
                for rater in ("ana", "bia"):
                    clear = min(5, max(1, right + 1 + int(rng.integers(-1, 2))))
                    out.writerow([name, system, rater, text, clear, max(0, 4 - right + int(rng.integers(-1, 2)))])
    (tmp_path / "metricas.py").write_text(METRIC, encoding="utf-8")
    return tmp_path


def imported(folder: Path, **options: object) -> proctor.Evaluation:
    columns = {"lower_is_better": ["erros"], **options.pop("columns", {})}  # type: ignore[dict-item]
    given = {"store": folder / "pt.db", "columns": columns, **options}
    return proctor.import_answers(folder / "perguntas.csv", folder / "avaliacoes.csv", **given)  # type: ignore[arg-type]


def changed(folder: Path, rows: Sequence[tuple[int, int, str]], name: str = "avaliacoes.csv") -> None:
    """Changes cells of the table of ratings: row as in a spreadsheet, column from 0, text."""
    lines = [line.split(";") for line in (folder / "avaliacoes.csv").read_text("utf-8").splitlines()]
    for row, column, text in rows:
        lines[row - 1][column] = text
    (folder / name).write_text("\n".join(map(";".join, lines)) + "\n", encoding="utf-8")


def test_the_whole_chain_gives_scipys_figures(folder: Path) -> None:
    made = imported(folder)
    assert [line.partition(" in ")[0] for line in made.done] == [
        f"24 answers with 96 ratings as {system} / video" for system in ("alfa", "beta", "gama")
    ]
    store = made.store
    assert [one.levels[-1] for one in store.card("perguntas").rating.dimensions] == [5.0, 5.0]  # type: ignore[union-attr]
    assert proctor.score(store, "perguntas", metrics=[f"{folder / 'metricas.py'}:sobreposicao", "rouge-1-best"]).by == {
        "sobreposicao": 72,
        "rouge-1-best": 72,
    }
    found = {(row["metric"], row["dimension"]): row for row in proctor.audit(store, draws=0).rows if not row["rater"]}
    rated = pd.read_csv(folder / "avaliacoes.csv", sep=";")
    references = pd.read_csv(folder / "perguntas.csv").set_index("id")["resposta correta"]
    words = [set(references[name].split()) for name in rated["caso"]]
    own = [len(some & set(text.split())) / len(some) for some, text in zip(words, rated["resposta"], strict=True)]
    for dimension, sign in (("clareza", 1), ("erros", -1)):
        scores, values = [sign * value for value in own], rated[dimension]
        row = found["sobreposicao", dimension]
        assert row["ratings"] == 144
        assert row["kendalltau"] == pytest.approx(stats.kendalltau(scores, values)[0])
        assert row["pearson"] == pytest.approx(stats.pearsonr(scores, values)[0])
        assert row["spearman"] == pytest.approx(stats.spearmanr(scores, values)[0])
        assert row["mean"] > 0.4


def test_the_table_alone_and_the_store_say_the_same(folder: Path) -> None:
    store = imported(folder).store
    proctor.score(store, "perguntas", metrics="rouge-1-best")
    proctor.export(store, folder / "s.csv", "perguntas")
    lower = {"lower_is_better": ["erros"]}
    both = [
        proctor.audit(store, draws=50),
        proctor.audit(folder / "s.csv", folder / "s.csv", draws=50, columns=lower),
        proctor.audit(folder / "s.csv", folder / "avaliacoes.csv", draws=0, columns=lower),
    ]
    told = [{(row["dimension"], row["rater"]): row["mean"] for row in one.rows} for one in both]
    assert told[0] == {key: pytest.approx(value, abs=1e-12) for key, value in told[1].items()}
    assert told[0] == {key: pytest.approx(value, abs=1e-12) for key, value in told[2].items()}


def test_again_changes_nothing_and_a_third_rater_comes_later(folder: Path) -> None:
    store = imported(folder).store
    before = sum(len(store.score_rows(run)) for run in store.runs("perguntas"))
    imported(folder)
    assert sum(len(store.score_rows(run)) for run in store.runs("perguntas")) == before
    (folder / "mais.csv").write_text(
        "caso,sistema,avaliador,clareza\nc00,alfa,caio,3\nc01,beta,caio,1\n", encoding="utf-8"
    )
    made = proctor.import_answers("perguntas", folder / "mais.csv", store=store)
    assert [line.partition(" in ")[0] for line in made.done] == [
        "1 answer with 1 rating as alfa / video", "1 answer with 1 rating as beta / video",
    ]  # fmt: skip
    assert "human:caio" in store.scorers("perguntas")
    assert store.card("perguntas").metric("erros").higher_is_better is False  # kept


def test_the_dimensions_stay_when_the_questions_are_loaded_again(folder: Path) -> None:
    store = imported(folder).store
    proctor.run(folder / "perguntas.csv", "random", conditions="text-only", store=store)
    rating = store.card("perguntas").rating
    assert rating is not None
    assert [one.name for one in rating.dimensions] == ["clareza", "erros"]


FAULTS = [
    ([(3, 0, "c99")], "row 3, column 'caso': found 'c99', expected the id of a question, such as 'c00'"),
    ([(3, 3, "")], None),  # the text stands in the row above
    ([(2, 3, ""), (3, 3, "")], ("row 2: found no answer of alfa / video to 'c00' in the store or in the table, expected a "
     "column with the answers (--map candidate=COLUMN), or the answers first: proctor import, proctor run")),
    ([(3, 4, "ótimo")], "row 3, column 'clareza': found 'ótimo', expected a finite number"),
    ([(3, 2, "ana")], "row 3, column 'avaliador': found a second rating by 'ana', after row 2, expected one of each rater"),
    ([(3, 2, "")], "row 3, column 'avaliador': found nothing, expected a name"),
    ([(3, 4, "")], None),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "said"), FAULTS)
def test_a_refusal_names_the_row_and_writes_nothing(
    folder: Path, cells: Sequence[tuple[int, int, str]], said: str | None
) -> None:
    changed(folder, cells)
    if said is None:
        assert len(imported(folder).done) == 3
        return
    with pytest.raises(InputError) as caught:
        imported(folder)
    assert str(caught.value) == f"{folder / 'avaliacoes.csv'}: {said}"
    assert not (folder / "pt.db").exists()


def test_faults_of_one_cause_are_one_line(folder: Path) -> None:
    changed(folder, [(row, 0, f"x{row}") for row in range(2, 12)])
    with pytest.raises(InputError, match="row 2, column 'caso': found 'x2'") as caught:
        imported(folder)
    head, line = caught.value.__notes__
    assert head == "10 faults in all:"
    assert "10 times: expected the id of a question, such as 'c00'; found row 2, column 'caso': 'x2'" in line


def test_what_the_store_has_is_not_changed(folder: Path) -> None:
    store = imported(folder).store
    changed(
        folder,
        [(2, 4, "1" if (folder / "avaliacoes.csv").read_text("utf-8").splitlines()[1].split(";")[4] != "1" else "2")],
    )
    with pytest.raises(
        InputError, match=r"row 2, column 'clareza': found \d, expected \d, as .*pt\.db has it, or another --store"
    ):
        imported(folder)
    (folder / "n.csv").write_text("caso,sistema,avaliador,resposta,clareza\nc00,alfa,eva,outra,3\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"row 2, column .resposta.: found another answer of 'alfa' to 'c00' than in .*pt.db"
    ):
        proctor.import_answers("perguntas", folder / "n.csv", store=store)
    assert "human:eva" not in store.scorers("perguntas")


def test_a_scale_grows_until_a_metric_has_scored_on_it(folder: Path) -> None:
    store = imported(folder).store
    (folder / "n.csv").write_text("caso,sistema,avaliador,clareza\nc00,alfa,eva,7\n", encoding="utf-8")
    proctor.import_answers("perguntas", folder / "n.csv", store=store)
    assert store.card("perguntas").metric("clareza").high == 7.0
    proctor.score(store, "perguntas", metrics="rouge-1-best")
    (folder / "n.csv").write_text("caso,sistema,avaliador,clareza\nc01,alfa,eva,9\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="found a scale from 1 to 9, and scores by rouge-1-best on 1 to 7, expected the same"
    ):
        proctor.import_answers("perguntas", folder / "n.csv", store=store)


def test_declared_dimensions_are_those_that_count(folder: Path) -> None:
    file = folder / "dims.yaml"
    file.write_text(
        "dimensions:\n- {name: clareza, levels: [1, 3, 5]}\n- {name: erros, levels: [0, 9], lower_is_better: true}\n"
    )
    store = imported(folder, dimensions=file).store
    assert store.card("perguntas").metric("erros").high == 9.0
    file.write_text(
        "dimensions:\n- {name: clareza, levels: [1, 2]}\n- {name: erros, levels: [0, 9], lower_is_better: true}\n"
    )
    with pytest.raises(InputError, match=r"row \d+, column 'clareza': found \d") as caught:
        imported(folder, dimensions=file, store=folder / "other.db")
    assert "expected a number from 1 to 2" in caught.value.__notes__[1]


def test_a_system_without_a_column_is_named(folder: Path) -> None:
    (folder / "um.csv").write_text(
        "caso,avaliador,resposta,clareza\nc00,ana,febre,3\nc01,ana,pinça,4\n", encoding="utf-8"
    )
    with pytest.raises(
        InputError, match="found no column of the systems among 'caso', 'avaliador', 'resposta', 'clareza'"
    ):
        proctor.import_answers(folder / "perguntas.csv", folder / "um.csv", store=folder / "um.db")
    made = proctor.import_answers(folder / "perguntas.csv", folder / "um.csv", name="delta", store=folder / "um.db")
    assert made.done[0].startswith("2 answers with 2 ratings as delta / video")
    with pytest.raises(InputError, match="found systems' names, expected none of them beside --name delta"):
        imported(folder, name="delta", store=folder / "x.db")


def test_answers_alone_and_names_of_columns(folder: Path) -> None:
    text = (folder / "avaliacoes.csv").read_text("utf-8").replace("caso;sistema;avaliador;resposta", "k;s;quem;dito")
    (folder / "avaliacoes.csv").write_text(text, encoding="utf-8")
    named = {"item": ["k"], "system": ["s"], "rater": ["quem"], "candidate": ["dito"]}
    store = imported(folder, columns=named, answers_only=True).store
    assert sum(len(store.answers(run)) for run in store.runs("perguntas")) == 72
    assert store.scorers("perguntas") == {}
    assert len(imported(folder, columns=named).done) == 3
    assert {*store.scorers("perguntas")} == {"human:ana", "human:bia"}


def test_rating_fields_of_a_table_without_ratings_are_refused(folder: Path) -> None:
    (folder / "a.csv").write_text("k,dito\nc00,febre\n", encoding="utf-8")
    made = proctor.import_answers(
        folder / "perguntas.csv", folder / "a.csv", name="alfa", store=folder / "a.db",
        columns={"item": "k", "candidate": "dito"},
    )  # fmt: skip
    assert made.done[0].startswith("1 answer and 0 judgements as alfa")
    with pytest.raises(
        UsageError, match=r"no table of ratings\. Leave --map system=k out; answers have item and candidate"
    ):
        proctor.import_answers(folder / "perguntas.csv", folder / "a.csv", name="alfa", columns={"system": "k"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "quebrada",
            r"metricas\.py:quebrada, item 'c00': ZeroDivisionError: division by zero \(metricas\.py, line 11\)",
        ),
        ("longa", r"metricas\.py:longa, item 'c00': found \d+, expected 0 to 1 \(or declare low and high\)"),
        (
            "estranha",
            r"metricas\.py:estranha: estranha: found the parameter 'words', expected of a metric: item, answer",
        ),
        ("nenhuma", r"metricas\.py: found no 'nenhuma', expected one of sobreposicao, quebrada, longa, estranha"),
    ],
)
def test_errors_of_a_metric_in_a_file_are_one_line(folder: Path, name: str, said: str) -> None:
    store = imported(folder).store
    with pytest.raises(proctor.ProctorError, match=said) as caught:
        proctor.score(store, "perguntas", metrics=f"{folder / 'metricas.py'}:{name}")
    assert "\n" not in str(caught.value)


def test_power_is_refused_before_anything_is_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = imported(folder).store
    proctor.score(store, "perguntas", metrics=["rouge-1-best", "rouge-2-best", "rouge-l-best"])
    monkeypatch.setattr("proctor.audits.report.compare", lambda *_: pytest.fail("compared"))
    with pytest.raises(
        UsageError, match=r"--power compares two scorers, and here are 3 \(rouge-1-best, .*\)\. Name two by --scorer\."
    ):
        proctor.audit(store, power=True)


def test_a_text_metric_from_before_the_ratings_counts(folder: Path) -> None:
    """It was scored when nobody knew of dimensions: its one score stands for each of them."""
    store = imported(folder, answers_only=True).store
    proctor.score(store, "perguntas", metrics="rouge-1-best")
    imported(folder)
    early = {row["dimension"]: row["mean"] for row in proctor.audit(store, draws=0).rows if not row["rater"]}
    other = Store(folder / "late.db")
    imported(folder, store=other)
    proctor.score(other, "perguntas", metrics="rouge-1-best")
    late = {row["dimension"]: row["mean"] for row in proctor.audit(other, draws=0).rows if not row["rater"]}
    assert early == {name: pytest.approx(value) for name, value in late.items()}


def test_scores_of_another_program_come_in_by_a_table(folder: Path) -> None:
    store = imported(folder).store
    rows = [(f"c{k:02d}", system, 1 + k % 5) for k in range(24) for system in ("alfa", "beta", "gama")]
    text = "caso,sistema,dimension,value\n" + "".join(f"{c},{s},clareza,{v}\n" for c, s, v in rows)
    (folder / "outro.csv").write_text(text, encoding="utf-8")
    made = proctor.import_answers("perguntas", folder / "outro.csv", scorer="outro", store=store)
    assert made.done[0].startswith("72 scores by outro")
    rows_of = [
        row for row in proctor.audit(store, draws=0).rows if row["metric"] == "outro" and row["mean"] is not None
    ]
    assert {row["dimension"] for row in rows_of} == {"clareza"}
