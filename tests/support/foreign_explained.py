"""Run in the environment with Inspect: the gap between a run of ours and a log that Inspect wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import proctor
from tests.support.lamp_benchmark import lamps


def explained(folder: Path) -> dict[str, Any]:
    from inspect_ai.log import read_eval_log

    (file,) = (folder / "eval").iterdir()
    rows = [f"{item.id},{'yes' if item.reference and item.reference.answer else 'no'}" for item in lamps().items]
    (folder / "ours.csv").write_text("\n".join(["id,answer", *rows]) + "\n")
    made = proctor.import_answers(lamps(), folder / "ours.csv", name="ours", store=folder / "explained.db")
    found = proctor.explain("ours", file, store=made.store, draws=100)
    data, log = found.data.to_json(), read_eval_log(str(file))
    assert log.results is not None
    return {
        "parts": {part["part"]: part["difference"] for part in data["parts"]},
        "gap": data["gap"],
        "second": data["second"],
        "kinds": [one["kind"] for one in data["differences"]],
        "inspect": log.results.scores[0].metrics["accuracy"].value,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(explained(Path(sys.argv[2]))) + "\n")
