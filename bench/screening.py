"""How well blind screening tells planted items apart, for k models: `python bench/screening.py`.

Items that can be solved without the video (each model does so with a probability of 0.85) and items that can't (each
option is equally likely) are screened by the stage's own rule. Models that err alike are harder to use: with the given
share of items, all of them guess the same.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import binomtest

from proctor_build.pipeline import ScreenSettings, flagged_by_chance

_OPTIONS, _SKILL = 4, 0.85


def share(hits: int, n: int) -> str:
    """A share with its exact 95 % interval."""
    span = binomtest(hits, n).proportion_ci(0.95, "exact")
    return f"{hits / n:6.1%} [{span.low:.1%}, {span.high:.1%}]"


def main() -> None:
    """Prints sensitivity and false flags by the number of answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000, help="of each kind")
    parser.add_argument("--alike", type=float, default=0.0, help="share of items on which all models guess the same")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    alpha = ScreenSettings().alpha
    print(f"alpha {alpha}, {_OPTIONS} options, {given.items} items of each kind, alike {given.alike:.0%}")
    print("answers   solvable items flagged        unsolvable items flagged      least p")
    for asked in (1, 2, 3, 5, 10):
        rates = []
        for skill in (_SKILL, 1 / _OPTIONS):
            alone = rng.random((given.items, asked)) < skill
            same = rng.random(given.items) < given.alike
            solved = np.where(same, alone[:, 0] * asked, alone.sum(axis=1))
            flags = sum(flagged_by_chance(int(one), asked, 1 / _OPTIONS, alpha) for one in solved)
            rates.append(share(flags, given.items))
        print(f"{asked:7d}   {rates[0]:28s}  {rates[1]:28s}  {(1 / _OPTIONS) ** asked:.4f}")


if __name__ == "__main__":
    main()
