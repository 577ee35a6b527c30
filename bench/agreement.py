"""What agrees with clinicians on the validation data of MEDIQA-EVAL 2026, in one table.

PROCTOR_DATA=… python bench/agreement.py --work FOLDER      (the tables of docs/tasks/what-agrees-with-clinicians.md)

Everything that learns stands with its scores of encounters that it has not learned from: the classifier judge
(MiniLM, five seeds), the local pipeline without a model, the embedded judge in several draws of the folds, and
mixtures. Commands that a user would run, one after the other, on one store; what is done is kept in the folder and
not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import proctor_train

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from pydantic import JsonValue

from proctor import api
from proctor.audits import AS_GIVEN, LeadRow
from proctor.core import DASH, number, number_interval, p_value, signed
from proctor.reports import spoken_language
from proctor.results import judges_of
from proctor.runs import Store
from proctor.stats import Contrast, Estimate
from proctor_train import ComparedJudges

BENCHMARK = "mediqa-eval"
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures" / "what-agrees-with-clinicians.json"
_HASH = re.compile(r"/out-of-fold|\[[0-9a-f]{8}\]")

Shown = tuple[str, Sequence[str], list[list[str]]]
"""A table of the page: title, heads and rows."""


def prepared(data: Path, work: Path) -> Store:
    """The store with ratings, and the scores of judges that learned from them, out of fold."""
    store = api.open_store(work / "runs.db")
    api.import_answers(BENCHMARK, data / "ratings.csv", data=data, store=store)
    proctor_train.train_classifier_judge(store, BENCHMARK, out=work / "classifier", references=True)
    fit = work / "pipeline.json"
    if not fit.exists():
        proctor_train.fit_judge(store, BENCHMARK, method="pipeline", out=fit)
    api.score(store, BENCHMARK, judge="local-pipeline", options={"fit": str(fit)})
    return store


def name_of(metric: str) -> str:
    """A scorer without the hash of what it learned from."""
    return _HASH.sub("", metric)


def told(value: Estimate | Contrast, *, sign: bool = False) -> str:
    """A figure with its interval."""
    return f"{(signed if sign else number)(value.value)} ({number_interval(value.ci_low, value.ci_high)})"


def leads_of(row: LeadRow, over: Sequence[str]) -> list[str]:
    """A lead over each, with interval and adjusted p; bold where it may be claimed."""
    by_name = {one.over: one for one in row.leads}
    cells = []
    for name in over:
        one = by_name.get(name)
        shown = DASH if one is None else f"{told(one.difference, sign=True)}, {p_value(one.p_holm)}"
        cells.append(f"**{shown}**" if one is not None and one.significant else shown)
    return cells


def page(found: ComparedJudges) -> list[Shown]:
    """The tables of the page: wide, since a page is no terminal."""
    made: list[Shown] = []
    over, plain = found.over, [name.removesuffix("-mean") for name in found.over]
    for language in dict.fromkeys(row.language for row in found.rows):
        rows = {(row.metric, row.dimension, row.part): row for row in found.rows if row.language == language}
        whole = [row for row in rows.values() if (row.dimension, row.part) == ("", "all")]
        order = [row.metric for row in sorted(whole, key=lambda row: -(row.figure.value or 0.0))]
        spoken = spoken_language(language)
        heads = ["", "agreement", *(f"lead over {name}, adjusted p" for name in plain)]
        lines = [
            [name_of(one), told(rows[one, "", "all"].figure), *leads_of(rows[one, "", "all"], over)] for one in order
        ]
        made.append((f"{spoken}: mean over the dimensions", heads, lines))
        dimensions = list(dict.fromkeys(dimension for _, dimension, _ in rows if dimension))
        lines = [[name_of(one), *(by_dimension(rows[one, name, "all"], over) for name in dimensions)] for one in order]
        made.append((f"{spoken}: by dimension, and leads over {' and '.join(plain)}", ["", *dimensions], lines))
        lines = []
        for one in order:
            parts = [
                text
                for part in ("between", "within")
                for text in (
                    told(rows[one, "", part].figure),
                    by_dimension(rows[one, "", part], over, leads_alone=True),
                )
            ]
            tied = rows[one, "", "tied"]
            lines.append(
                [name_of(one), *parts, number(tied.figure.value), told(tied.lead(AS_GIVEN).difference, sign=True)]
            )
        lead = f"leads over {', '.join(plain)}"
        heads = ["", "r between", lead, "r within", lead, "tied", "tied less as given"]
        made.append((f"{spoken}: between and within encounters, and what ties are worth", heads, lines))
    return [*made, *oracles(found)]


def by_dimension(row: LeadRow, over: Sequence[str], *, leads_alone: bool = False) -> str:
    """A figure and its leads without intervals; bold as in `leads_of`."""
    by_name, shown = {one.over: one for one in row.leads}, []
    for name in over:
        one = by_name.get(name)
        text = DASH if one is None else signed(one.difference.value)
        shown.append(f"**{text}**" if one is not None and one.significant else text)
    return ", ".join(shown) if leads_alone else f"{number(row.figure.value)} ({', '.join(shown)})"


def oracles(found: ComparedJudges) -> list[Shown]:
    """Oracles and the learning curve, by language."""
    languages = list(dict.fromkeys(row.language for row in found.bounds))
    heads = [spoken_language(one) for one in languages]
    whole = {(row.metric, row.language): row.figure for row in found.bounds if (row.dimension, row.part) == ("", "all")}
    names = list(dict.fromkeys(metric for metric, _ in whole))
    curve = {(one.encounters, one.language): one.figure for one in found.curve}
    return [
        ("Oracles", ["", *heads], [[name, *(told(whole[name, one]) for one in languages)] for name in names]),
        (
            "Learning curve of the embedded judge",
            ["encounters learned from", *heads],
            [
                [f"{size}", *(told(curve[size, one]) for one in languages)]
                for size in dict.fromkeys(n for n, _ in curve)
            ],
        ),
    ]


def main() -> None:
    """Writes what the page shows, and everything beside the store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the store, trainings and scores")
    parser.add_argument("--out", type=Path, default=FIGURES)
    parser.add_argument("--repeats", type=int, default=5, help="draws of the folds")
    options = parser.parse_args()
    folder = os.environ.get("PROCTOR_DATA")
    if not folder:
        parser.error("PROCTOR_DATA must name the folder of real data")
    options.work.mkdir(parents=True, exist_ok=True)
    store = prepared(Path(folder) / BENCHMARK, options.work)
    learned = [
        one for one in judges_of(store, BENCHMARK) if one.startswith(("classifier-judge/out-of-fold", "local-pipeline"))
    ]
    kept = options.work / "kept"
    found = proctor_train.judge_agreement(
        store, BENCHMARK, learned=learned, repeats=options.repeats, curve=True, keep=kept
    )
    found.write(options.work / "agreement.json")
    shown: dict[str, JsonValue] = {
        "settings": dict(found.settings),
        "ahead": {name: [name_of(one) for one in ahead] for name, ahead in found.ahead.items()},
        "tables": [
            {"title": title, "heads": list(heads), "rows": [list(row) for row in rows]}
            for title, heads, rows in page(found)
        ],
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
