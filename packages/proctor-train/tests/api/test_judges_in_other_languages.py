"""Judges are compared, and one is chosen, on ratings in a language that the embedded judge can't read."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor
import proctor_train
from proctor.core import InputError, UsageError
from proctor.results import similarity_scores
from proctor_train import judge_comparison
from tests.api.test_import_of_ratings import folder, imported  # noqa: F401 - a fixture


def test_judges_are_compared_and_chosen_in_a_language_that_the_embedded_one_cannot_read(
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = imported(folder).store
    names = ["rouge-1-mean", "chrf-mean"]
    proctor.score(store, "perguntas", metrics=[f"{folder / 'metricas.py'}:sobreposicao", *names])
    monkeypatch.setattr(
        judge_comparison._Comparison,
        "_texts",
        lambda self: similarity_scores(self.table, self.rated, self.scheme, names),
    )
    given = {"scorer": "sobreposicao", "lead_over": "rouge-1-mean", "draws": 100}
    found = proctor_train.judge_agreement(store, "perguntas", **given)  # type: ignore[arg-type]
    assert {row.metric for row in found.rows} == {"sobreposicao", *names}
    assert found.notes == (
        (
            "Left out: the embedded judge and mixtures with it, since it reads en and zh, by the questions' column 'language'; "
            "found no language"
        ),
    )
    with pytest.raises(UsageError, match=r"--curve needs answers in en or zh .*, and finds no language"):
        proctor_train.judge_agreement(store, "perguntas", curve=True, **given)  # type: ignore[arg-type]
    chosen = proctor_train.fit_judge(store, "perguntas", method="choice", out=folder / "escolha.json")
    assert any("sobreposicao" in str(table.texts) for table in chosen.tables)
    scored = proctor.score(store, "perguntas", judge="per-dimension", options={"choice": str(folder / "escolha.json")})
    assert list(scored.by.values()) == [72]
    with pytest.raises(
        InputError, match=r"language: found '', expected one of en, zh .* others: judge fit --method choice"
    ):
        proctor_train.fit_judge(store, "perguntas", method="embedded", out=folder / "juiz")
