"""An attack by least squares on the product's own boards never gets more than the page says was given away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.board_attack import Attack, four_options
from tests.support.challenge_data import focus_data


@pytest.mark.parametrize("rule", ["all", "ladder"])
@pytest.mark.parametrize("benchmark", ["focus", "own-questions"], ids=["two options, two boards", "four options"])
def test_an_attacker_gets_no_more_than_the_page_says(tmp_path: Path, benchmark: str, rule: str) -> None:
    data = focus_data(tmp_path / "data", videos=7) if benchmark == "focus" else four_options(tmp_path / "data")
    attack = Attack(tmp_path / "c", benchmark, data, rule, seed=1)
    gained, told = attack.run(20)
    assert max(gained) < told[rule]["attack"]["bound"]
    assert 0 < told[rule]["attack"]["optimism"] < told[rule]["attack"]["bound"]
    assert told["ladder"]["attack"]["bound"] < told["all"]["attack"]["bound"]
    if rule == "all":
        assert gained[0] > 0.02  # it is an attack: two options 15, four options 11 points are expected
