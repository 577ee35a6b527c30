"""An attack by least squares on the product's own boards never gets more than the page says was given away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.board_attack import Attack, attack_data


@pytest.mark.parametrize(
    ("benchmark", "rule"),
    [("focus", "all"), ("own-questions", "all"), ("focus", "ladder")],
    ids=["two options, two boards", "four options", "two options, the ladder"],
)
def test_an_attacker_gets_no_more_than_the_page_says(tmp_path: Path, benchmark: str, rule: str) -> None:
    attack = Attack(tmp_path / "c", benchmark, attack_data(benchmark, tmp_path / "data"), rule, seed=1)
    gained, told = attack.run(12)
    assert 0 < told[rule]["attack"]["optimism"] < told[rule]["attack"]["bound"]
    assert max(gained) <= min(told[rule]["attack"]["bound"], 1.0)
    assert told["ladder"]["attack"]["bound"] < told["all"]["attack"]["bound"]
    if rule == "all":
        assert gained[0] > 0.02  # it is an attack: 12 points are expected with two options, 9 with four
