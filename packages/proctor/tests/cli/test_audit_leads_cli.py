"""`proctor audit --lead-over` and `--power`, on two tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.program import proctor


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Forty groups of two answers: "near" follows the ratings closely, "far" hardly."""
    folder, rng = tmp_path_factory.mktemp("leads"), np.random.default_rng(0)
    rows, ratings = ["item,system,near,far"], ["item,system,rater,value"]
    for number in range(80):
        value = rng.integers(0, 3) / 2
        ratings.append(f"e{number // 2},s{number % 2},r,{value}")
        rows.append(f"e{number // 2},s{number % 2},{value + 0.2 * rng.normal():.4f},{value + 2 * rng.normal():.4f}")
    scores, rated = folder / "scores.csv", folder / "ratings.csv"
    scores.write_text("\n".join(rows) + "\n", encoding="utf-8")
    rated.write_text("\n".join(ratings) + "\n", encoding="utf-8")
    return scores, rated


def _audited(tables: tuple[Path, Path], *more: str) -> tuple[int, str, str]:
    done = proctor("audit", "--scores", tables[0], "--ratings", tables[1], "--draws", "200", *more)
    return done.returncode, done.stdout, done.stderr


def test_leads_and_power_are_told(tables: tuple[Path, Path]) -> None:
    code, said, notes = _audited(tables, "--lead-over", "far", "--power")
    assert code == 0, notes
    assert "All ratings: agreement, and leads" in said
    for part in ("agreement between groups", "agreement within groups", "what ties are worth"):
        assert f"All ratings: {part}" in said
    assert "chance to tell near from far" in said
    assert "Second ratings: not simulated" in notes + said


def test_leads_and_power_for_programs(tables: tuple[Path, Path]) -> None:
    code, said, notes = _audited(
        tables, "--lead-over", "far", "--power", "--rater-agreement", "0.97", "--format", "json"
    )
    assert code == 0, notes
    found = json.loads(said)
    (row,) = [one for one in found["leads"] if (one["metric"], one["dimension"], one["part"]) == ("near", "ALL", "all")]
    (lead,) = row["leads"]
    assert lead["difference"]["value"] > 0.3
    assert lead["difference"]["p"] < 0.001
    assert lead["p_holm"] == lead["difference"]["p"]
    assert found["power"]["agreement"] == 0.97
    assert {one["seconds"] for one in found["power"]["rows"]} == {False, True}
    assert _audited(tables, "--format", "json")[1].count('"leads"') == 0


def test_power_is_of_two(tables: tuple[Path, Path], tmp_path: Path) -> None:
    alone = tmp_path / "alone.csv"
    alone.write_text(
        "\n".join(",".join(line.split(",")[:3]) for line in tables[0].read_text(encoding="utf-8").splitlines()),
        encoding="utf-8",
    )
    code, _, notes = _audited((alone, tables[1]), "--power")
    assert code != 0
    assert "--power compares two scorers, and here are 1 (near). Name two by --scorer." in notes


def test_an_unknown_baseline_ends_with_one_line(tables: tuple[Path, Path]) -> None:
    code, _, notes = _audited(tables, "--lead-over", "bleu")
    assert code != 0
    assert "lead over: found 'bleu', expected one of near, far" in notes
