"""What several functions and classes take under one name has one default, in all rooms; what differs is named here with
its reason."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from tests.support.paths import modules

COMMON = {
    "seed": 0,
    "draws": 2000,
    "level": 0.95,
    "alpha": 0.05,
    "concurrency": 8,
    "two_level": False,
    "all_items": False,
}
OTHERS = {
    "proctor.stats.standings.RankingPlan.draws": 10_000,  # as the published ranking has it
    "proctor.stats.ladder.luck.draws": 400,  # whole competitions, not resamples
    "proctor.stats.ladder.least_squares.draws": 400,
    "proctor.audits.power.PowerPlan.level": 0.05,  # of significance
    "proctor.reports.metric_ranking.metric_board_table.level": "95 %",  # as a text
    "proctor.metrics.ordering.orders.overall_score.alpha": 0.7,  # a weight of the published score
    "proctor_web.agreement.DimensionAgreement.alpha": None,  # Krippendorff's
}


def functions() -> Iterator[tuple[str, Any]]:
    """All functions, methods and constructors of the package, with where they are."""
    for module in modules():
        if module == "proctor.__main__":
            continue
        found = vars(importlib.import_module(module))
        for name, one in found.items():
            if getattr(one, "__module__", "") != module:
                continue
            if inspect.isfunction(one):
                yield f"{module}.{name}", one
            elif inspect.isclass(one):
                for method, function in vars(one).items():
                    if inspect.isfunction(function):
                        yield f"{module}.{name}.{method}".removesuffix(".__init__"), function


def test_an_option_has_one_default() -> None:
    given = {
        f"{name}.{option}": parameter.default
        for name, function in functions()
        for option, parameter in inspect.signature(function).parameters.items()
        if option in COMMON and parameter.default is not parameter.empty
    }
    assert len(given) > 120
    wanted = {name: OTHERS.get(name, COMMON[name.rpartition(".")[2]]) for name in given}
    assert given == wanted
    assert OTHERS.keys() <= given.keys()
