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
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor import api
from proctor.runs import Store, judges_of

BENCHMARK = "mediqa-eval"
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures" / "what-agrees-with-clinicians.json"
SHOWN = ("settings", "over", "ahead", "tables")
"""What the page needs of everything."""


def prepared(data: Path, work: Path) -> Store:
    """The store with ratings, and the scores of judges that learned from them, out of fold."""
    store = api.open_store(work / "runs.db")
    api.import_answers(BENCHMARK, data / "ratings.csv", data=data, store=store)
    api.train_classifier_judge(store, BENCHMARK, out=work / "classifier", references=True)
    fit = work / "pipeline.json"
    if not fit.exists():
        api.fit_judge(store, BENCHMARK, method="pipeline", out=fit)
    api.score(store, BENCHMARK, judge="local-pipeline", options={"fit": str(fit)})
    return store


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
    found = api.judge_agreement(store, BENCHMARK, learned=learned, repeats=options.repeats, curve=True, keep=kept)
    found.write(options.work / "agreement.json")
    told = {name: value for name, value in found.to_json().items() if name in SHOWN}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
