"""Hugging Face: a model's results and card, a benchmark's eval.yaml, and a dataset folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core import (
    ACCURACY,
    BENCHMARKS,
    UsageError,
    count_of,
    natural,
    number_interval,
    reader_or_default,
    whole_folder,
    write_whole,
)
from proctor.interchange.dataset_rows import DATASET_COLUMNS, RowForm, dataset_row, row_form
from proctor.interchange.export_source import ExportSource, Written, check_origin, copy_media, model_of
from proctor.interchange.licences import hub_licence
from proctor.metrics import code_scorers
from proctor.results import OFFICIAL_SUMMARIES, Result

_PLAIN = re.compile(r"[^\w.-]+", re.ASCII)
FRAMEWORK = "proctor"


def write_eval_results(source: ExportSource, out: Path) -> Written:
    """Writes a folder with `MODEL/.eval_results/BENCHMARK.yaml` for each system, to be added to the model's repository.
    There is one entry per condition, with the headline metric. Raises `UsageError` if `origin` has no dataset."""
    dataset = source.origin.get("dataset")
    if not dataset:
        raise UsageError(
            "--origin dataset=… is missing. Give the benchmark's dataset on the Hub: --origin dataset=OWNER/NAME"
        )
    check_origin(source)
    rows = [row for row in source.results if row.metric == source.card.headline and row.value is not None]
    by_system: dict[str, list[dict[str, Any]]] = {}
    names = {}
    for row in rows:
        run = next(one for one in source.runs if (one.system, one.condition) == (row.system, row.condition))
        names[row.system] = model_of(run, source.origin)
        low, high = row.ci_low, row.ci_high
        span = (
            f"{100 * source.options.level:g} % CI {number_interval(low, high)}"
            if low is not None and high is not None
            else ""
        )
        lacking = row.failed + row.missing + row.unresolved
        size = f"{count_of(row.n, 'item')} in {count_of(row.groups, 'group')}"
        notes = [f"condition {row.condition}", f"scorer {row.scorer}", span, size]
        of = f" of {row.n * row.repetitions} answers" if row.repetitions > 1 else ""
        notes += [f"{lacking}{of} failed or missing, counted as {row.policy}"] if lacking else []
        entry: dict[str, Any] = {
            "dataset": {"id": dataset, "task_id": task_id(source.card.name, row.condition)},
            "value": row.value,
            "date": source.begun[row.system, row.condition][:10],
            "notes": "; ".join(part for part in notes if part),
        }
        if source.origin.get("url"):
            entry["source"] = {"url": source.origin["url"], "name": "Proctor"}
        by_system.setdefault(row.system, []).append(entry)
    with whole_folder(out) as folder:
        for system, entries in by_system.items():
            location = folder / _plain(names[system].replace("/", "__")) / ".eval_results"
            write_whole(location / f"{_plain(source.card.name)}.yaml", yaml_text(entries))
    left = sum(row.metric == source.card.headline and row.value is None for row in source.results)
    dropped = [
        "intervals, denominators and conditions: the format has no fields; they are in `notes`",
        f"metrics other than {source.card.headline}: the format has one value per task",
    ]
    dropped += [f"{count_of(left, 'result')} of incomplete runs: a range, not one value"] if left else []
    return Written(len(by_system), "system", tuple(dropped))


def write_eval_yaml(source: ExportSource, out: Path) -> Written:
    """Writes `eval.yaml`, which registers a dataset as a benchmark, with one task per condition. Raises `InputError`
    where `out` can't be written."""
    write_whole(out, eval_yaml(source))
    note = "The Hub accepts only listed frameworks: request `proctor` there before you push the file."
    dropped = ("metrics, facets and the rules for failed answers: eval.yaml has no fields",)
    return Written(len(source.card.conditions), "task", dropped, (note,))


def eval_yaml(source: ExportSource) -> str:
    """The text of `eval.yaml`."""
    card = source.card
    size = f"{count_of(len(source.items), 'question')}, ranked by {card.metric(card.headline).label}."
    record = {
        "name": card.title,
        "description": f"{size} {source.origin.get('citation', '')}".strip(),
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
    """A value as YAML; texts that look like dates or numbers stay texts."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100))


def _plain(name: str) -> str:
    return _PLAIN.sub("_", name).strip(".") or "unnamed"


_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def write_model_card(source: ExportSource, out: Path) -> Written:
    """Writes a table with a row per system, condition and metric. Raises `InputError` where `out` can't be written."""
    rows = sorted(source.results, key=lambda row: (natural(row.system), natural(row.condition)))
    level = f"{100 * source.options.level:g} %"
    lines = [f"## {markdown_text(source.card.title)}", ""]
    lines += ["| " + " | ".join(("System", "Condition", "Metric", f"Value ({level} interval)", "n", "Videos or groups",
                                 "Failed or missing")) + " |", "| --- | --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    lines += [_line(source, row) for row in rows]
    how = f"exact for shares, bootstrap for other scores ({source.options.draws} draws)"
    lines += ["", f"Intervals: over groups, {how}. Proctor {__version__}."]
    lines += [f"Items: {len(source.items)}, fingerprint `{source.store.fingerprint(source.card.name)[:12]}`."]
    lines += [f"{name}: {markdown_text(text)}." for name, text in _about(source) if text]
    if source.card.simulated:
        lines.append("The procedures are simulated.")
    write_whole(out, "\n".join(lines) + "\n")
    dropped = ("answers: a table of results has no column for them",)
    return Written(len(rows), "row", dropped)


def _about(source: ExportSource) -> list[tuple[str, str]]:
    found = [("Licence of the data", source.licence), ("Citation", source.origin.get("citation", ""))]
    return [*found, ("See", source.origin.get("url", ""))]


def _line(source: ExportSource, row: Result) -> str:
    metric = source.card.metric(row.metric)
    show = metric.show
    ends = f" ({show(row.ci_low)} to {show(row.ci_high)})" if row.ci_low is not None and row.ci_high is not None else ""
    if row.value is not None:
        value = f"{show(row.value)}{ends}"
    elif row.if_wrong is not None and row.if_excluded is not None:  # there is no policy for missing answers
        value = f"{show(row.if_wrong)} to {show(row.if_excluded)}{ends}"
    else:
        value = "–"
    by = "" if row.scorer == "code" else f" ({row.scorer})"
    lacking = row.failed + row.missing + row.unresolved
    cells = (row.system, row.condition, metric.label + by, value, str(row.n), str(row.groups), str(lacking))
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def markdown_text(text: str) -> str:
    """A text that Markdown shows unchanged, in one line and one cell.

    >>> markdown_text("a|b <script>\\n*c*")
    'a\\\\|b \\\\<script\\\\> \\\\*c\\\\*'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


_LISTS = ("options", "accepted", "media")
_NUMBERS = ("start", "end", "tolerance")
_OPTIONAL = ("tolerance", "unit", "criteria", "details")
_SAME = ("facets", "buckets", "relevance", "only", "conditions", "excerpts", "seeds", "simulated", "failed", "budget_s")


def write_dataset_folder(source: ExportSource, out: Path) -> Written:
    """Writes `README.md`, `eval.yaml`, `benchmark.yaml`, `data/test-00000-of-00001.parquet`, and copied media. The
    folder is also a benchmark with the same items. Raises `InputError` where `out` is not empty or can't be written,
    and for missing media."""
    import pyarrow as pa
    from pyarrow import parquet

    form = row_form(source.items)
    rows = [dataset_row(item, form) for item in source.items]
    texts = pa.list_(pa.string())
    types = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), tuple: texts}
    own: dict[str, Any] = dict.fromkeys(_LISTS, texts) | dict.fromkeys(_NUMBERS, pa.float64())
    fields = [(name, own.get(name, pa.string())) for name in DATASET_COLUMNS if name in rows[0]] if rows else []
    fields += [(name, types[kind]) for name, kind in form.facets.items()]
    unused = {name for name in _OPTIONAL if all(row[name] is None for row in rows)}
    schema = pa.schema([field for field in fields if field[0] not in unused])
    settings, dropped = _settings(source, form)
    with whole_folder(out) as folder:
        copied = copy_media(source, folder)
        (folder / "data").mkdir()
        table = pa.Table.from_pylist(rows, schema=schema)
        parquet.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
        write_whole(folder / "README.md", _card(source, list(form.facets)))
        write_whole(folder / "eval.yaml", eval_yaml(source))
        write_whole(folder / "benchmark.yaml", yaml_text(settings))
    if not source.references:
        dropped.append("reference answers: left out on request")
    if source.media_of_items and not copied:
        dropped.append(f"media: {len(source.media_of_items)} named, not copied (--copy-media)")
    notes = () if source.licence else ("The licence of the data is unknown: --origin licence=…",)
    return Written(len(rows), "item", tuple(dropped), notes)


def _settings(source: ExportSource, form: RowForm) -> tuple[dict[str, Any], list[str]]:
    """The content of `benchmark.yaml`, and what it has no field for."""
    card, reader = source.card, reader_or_default(source.card.read_by)
    name = f"{card.name}-dataset" if card.name in BENCHMARKS.names() else card.name
    judge = card.judge or reader.rubric_judge or ""
    known = {metric.name for scorer in code_scorers() for metric in scorer.metrics}
    headline = card.headline if card.headline in known else ACCURACY.name
    every = _same_fields(source)
    found = {"exact": True, "name": name, "title": card.title, "licence": source.licence, "headline": headline}
    notes = [note for note in card.notes if note not in card.reading and not note.startswith("Licence: ")]
    found |= {"judge": judge, **every, "notes": notes}
    found["formats"] = {
        key: {"kind": one.kind} | one.model_dump(mode="json", exclude_defaults=True)
        for key, one in form.formats.items()
    }
    dropped = []
    if headline != card.headline:
        dropped.append(f"the headline {card.headline}: it comes from {card.name}'s own scorers")
    if card.rating is not None:
        dropped.append("the dimensions that people rate on: a dataset folder has none")
    if reader.prompts or reader.briefing or card.read_by in OFFICIAL_SUMMARIES.names() or card.published:
        dropped.append(
            f"prompts, definitions, official summary and published rows of {card.name}: its package has them"
        )
    return {key: value for key, value in found.items() if value or key == "facets"}, dropped


def _same_fields(source: ExportSource) -> dict[str, Any]:
    """The card's fields that `benchmark.yaml` has, too; of facets and buckets those that an item has."""
    found: dict[str, Any] = source.card.model_dump(mode="json", exclude_defaults=True, include=set(_SAME))
    tags = {tag for item in source.items for tag in item.tags}
    found |= {key: [one for one in found[key] if one in tags] for key in ("facets", "buckets") if key in found}
    found["facets"] = found.get("facets", [])
    return found


def _card(source: ExportSource, facets: list[str]) -> str:
    card = source.card
    head: dict[str, object] = {"pretty_name": card.title}
    if source.licence:
        head["license"] = hub_licence(source.licence)
        head |= {"license_name": source.licence} if head["license"] == "other" else {}
    head |= {"tags": ["proctor", "benchmark"]}
    head["configs"] = [{"config_name": "default", "data_files": [{"split": "test", "path": "data/test-*.parquet"}]}]
    lines = ["---", yaml_text(head).rstrip(), "---", "", f"# {markdown_text(card.title)}", ""]
    groups = len({item.group for item in source.items})
    size = f"{count_of(len(source.items), 'question')} in {count_of(groups, 'group')}"
    lines += [f"{size}, written by Proctor {__version__}."]
    lines += [f"Fingerprint `{source.store.fingerprint(card.name)}`.", ""]
    lines += ["What shares a `group` must be resampled together. `benchmark.yaml` explains the column `format`."]
    lines += [f"Facets: {', '.join(markdown_text(name) for name in facets)}."] if facets else []
    lines += [markdown_text(note) for note in card.notes]
    for name, text in (("Citation", source.origin.get("citation")), ("Made by", source.origin.get("creator"))):
        lines += ["", f"{name}: {markdown_text(text)}"] if text else []
    return "\n".join(lines) + "\n"
