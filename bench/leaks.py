"""What attacks on a hosted challenge's own boards get above chance, and what its page says was given away.

Each attack makes a challenge, submits files that are scored as a worker scores them, and reads the rounded figures that its
team is shown. FOCUS has two options and two boards in buckets; own questions have four options and one board.

python bench/leaks.py --attacks 10
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import get_args

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from tests.support.board_attack import Attack, How, attack_data


def attacked(benchmark: str, rule: str, results: int, how: How, seed: int) -> tuple[float, float, float]:
    """The gain on the best board, and what the page says: on average by least squares, and in 95 of 100 attacks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = attack_data(benchmark, folder / "data")
        gained, told = Attack(folder / "c", benchmark, data, rule, seed).run(results, how)
    said = told[rule]["attack"]
    return max(gained), said["optimism"], said["bound"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attacks", type=int, default=10)
    parser.add_argument("--results", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--how", nargs="+", default=list(get_args(How)))
    parser.add_argument("--rule", nargs="+", default=["all", "ladder"])
    parser.add_argument("--benchmark", nargs="+", default=["focus", "own-questions"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for benchmark in arguments.benchmark:
        for rule in arguments.rule:
            for results in arguments.results:
                for how in arguments.how if rule == "all" else arguments.how[:1]:
                    seeds = [arguments.seed + number for number in range(arguments.attacks)]
                    found = np.array([attacked(benchmark, rule, results, how, seed) for seed in seeds])
                    row = {"benchmark": benchmark, "rule": rule, "results": results, "how": how, "seeds": seeds}
                    row |= {"gain": round(float(found[:, 0].mean()), 4), "largest": round(float(found[:, 0].max()), 4)}
                    row |= {"said": round(float(found[:, 1].mean()), 4), "bound": round(float(found[:, 2].mean()), 4)}
                    row |= {"above the bound": int(np.sum(found[:, 0] > found[:, 2] + 1e-6))}
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
