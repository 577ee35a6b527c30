"""What the Hugging Face Hub shows: `.eval_results/*.yaml` of a model, and a benchmark's `eval.yaml`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from proctor.core import UsageError, count_of, whole_folder, write_whole
from proctor.interchange.export_source import ExportSource, Written, check_origin, model_of

_PLAIN = re.compile(r"[^\w.-]+", re.ASCII)
FRAMEWORK = "proctor"


def write_eval_results(source: ExportSource, out: Path) -> Written:
    """Writes a folder with `MODEL/.eval_results/BENCHMARK.yaml` for each system: to be added to the model's repository.
    The headline metric under each condition is an entry. Raises `UsageError` where `origin` does not name the
    dataset."""
    dataset = source.origin.get("dataset")
    if not dataset:
        raise UsageError("--origin dataset=", "the benchmark's dataset on the Hub (owner/name)")
    check_origin(source)
    rows = [row for row in source.results if row.metric == source.card.headline and row.value is not None]
    by_system: dict[str, list[dict[str, Any]]] = {}
    names = {}
    for row in rows:
        run = next(one for one in source.runs if (one.system, one.condition) == (row.system, row.condition))
        names[row.system] = model_of(run, source.origin)
        low, high = row.ci_low, row.ci_high
        span = (
            f"{100 * source.options.level:g} % interval {low:.4f} to {high:.4f}"
            if low is not None and high is not None
            else ""
        )
        lacking = row.failed + row.missing + row.unresolved
        size = f"{count_of(row.n, 'item')} in {count_of(row.groups, 'group')}"
        said = [f"condition {row.condition}", f"scorer {row.scorer}", span, size]
        said += [f"{lacking} failed or missing, counted as {row.policy}"] if lacking else []
        entry: dict[str, Any] = {
            "dataset": {"id": dataset, "task_id": task_id(source.card.name, row.condition)},
            "value": row.value,
            "date": source.begun[row.system, row.condition][:10],
            "notes": "; ".join(part for part in said if part),
        }
        if source.origin.get("url"):
            entry["source"] = {"url": source.origin["url"], "name": "Proctor"}
        by_system.setdefault(row.system, []).append(entry)
    with whole_folder(out) as folder:
        for system, entries in by_system.items():
            place = folder / _plain(names[system].replace("/", "__")) / ".eval_results"
            write_whole(place / f"{_plain(source.card.name)}.yaml", yaml_text(entries))
    left = sum(row.metric == source.card.headline and row.value is None for row in source.results)
    dropped = [
        "intervals, denominators and conditions as fields: the format has one value; they stand in `notes`",
        f"metrics other than {source.card.headline}: the format takes one value for each task",
    ]
    dropped += [f"{count_of(left, 'result')} of incomplete runs: a range, not one value"] if left else []
    return Written(len(by_system), "system", tuple(dropped))


def write_eval_yaml(source: ExportSource, out: Path) -> Written:
    """Writes `eval.yaml`, which registers a dataset as a benchmark: one task for each condition. Raises `InputError`
    where it can't be written."""
    write_whole(out, eval_yaml(source))
    note = "The Hub takes frameworks from a list of its own: ask there for `proctor` before you push the file."
    dropped = ("metrics, facets and the rules for what failed: eval.yaml has no field for them",)
    return Written(len(source.card.conditions), "task", dropped, (note,))


def eval_yaml(source: ExportSource) -> str:
    """The text of `eval.yaml`."""
    card = source.card
    said = f"{count_of(len(source.items), 'question')}, ranked by {card.metric(card.headline).label}."
    cited = source.origin.get("citation", "")
    record = {
        "name": card.title,
        "description": f"{said} {cited}".strip(),
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {"id": task_id(card.name, condition), "config": "default", "split": "test"} for condition in card.conditions
        ],
    }
    return yaml_text(record)


def task_id(benchmark: str, condition: str) -> str:
    """The name of a task: the benchmark under one condition.

    >>> task_id("lamps", "text-only")
    'lamps_text-only'
    """
    return f"{_plain(benchmark)}_{_plain(condition)}"


def yaml_text(value: object) -> str:
    """A value as YAML; dates and numbers that are texts stay texts."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100))


def _plain(name: str) -> str:
    return _PLAIN.sub("_", name).strip(".") or "unnamed"
