"""A Hugging Face dataset folder: items as Parquet, a card, `eval.yaml`, and the media where they are to be copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core import ACCURACY, BENCHMARKS, count_of, reader_or_default, whole_folder, write_whole
from proctor.interchange.dataset_rows import DATASET_COLUMNS, RowForm, dataset_row, row_form
from proctor.interchange.export_source import ExportSource, Written
from proctor.interchange.hugging_face import eval_yaml, yaml_text
from proctor.interchange.item_files import copy_media
from proctor.interchange.model_card import markdown_text
from proctor.metrics import code_scorers

_LISTS = ("options", "accepted", "media")
_NUMBERS = ("start", "end", "tolerance")
_OPTIONAL = ("tolerance", "unit", "criteria", "details")
_SAME = ("facets", "buckets", "relevance", "only", "conditions", "excerpts", "seeds", "simulated", "failed", "budget_s")


def write_dataset_folder(source: ExportSource, out: Path) -> Written:
    """Writes `README.md`, `eval.yaml`, `benchmark.yaml` and `data/test-00000-of-00001.parquet`; media below `out` by
    their names. Read as a benchmark it has the same items. Raises `InputError` where `out` is not empty or can't be
    written, and where a medium that is to be copied is missing."""
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
        dropped.append("reference answers: left out as asked")
    if source.media_of_items and not copied:
        dropped.append(f"media: {len(source.media_of_items)} named, not copied (--copy-media)")
    notes = () if source.licence else ("Nobody says under which licence the data are: --origin licence=…",)
    return Written(len(rows), "item", tuple(dropped), notes)


def _settings(source: ExportSource, form: RowForm) -> tuple[dict[str, Any], list[str]]:
    """What `benchmark.yaml` says, and what no field of it can."""
    card, reader = source.card, reader_or_default(source.card.name)
    name = f"{card.name}-dataset" if card.name in BENCHMARKS.names() else card.name
    judge = card.judge or reader.rubric_judge or ""
    known = {metric.name for scorer in code_scorers() for metric in scorer.metrics}
    headline = card.headline if card.headline in known else ACCURACY.name
    every: dict[str, Any] = card.model_dump(mode="json", exclude_defaults=True, include=set(_SAME))
    tags = {tag for item in source.items for tag in item.tags}
    every |= {key: [one for one in every[key] if one in tags] for key in ("facets", "buckets") if key in every}
    every["facets"] = every.get("facets", [])
    found = {"exact": True, "name": name, "title": card.title, "licence": source.licence, "headline": headline}
    notes = [note for note in card.notes if note not in card.reading and not note.startswith("Licence: ")]
    found |= {"judge": judge, **every, "notes": notes}
    found["formats"] = {
        key: {"kind": one.kind} | one.model_dump(mode="json", exclude_defaults=True)
        for key, one in form.formats.items()
    }
    dropped = (
        [] if headline == card.headline else [f"the headline {card.headline}: it comes from {card.name}'s own scorers"]
    )
    if card.rating is not None:
        dropped.append("the dimensions that people rate on: a dataset folder has none")
    if reader.prompts or reader.briefing or reader.protocols or card.published:
        dropped.append(
            f"prompts, definitions, official summary and published rows of {card.name}: its package has them"
        )
    return {key: value for key, value in found.items() if value or key == "facets"}, dropped


def _card(source: ExportSource, facets: list[str]) -> str:
    card = source.card
    head: dict[str, object] = {"pretty_name": card.title}
    if source.licence:
        head["license"] = source.licence.lower()
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
