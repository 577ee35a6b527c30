"""A Hugging Face dataset folder: items as Parquet, a card, `eval.yaml`, and the media where they are to be copied."""

from __future__ import annotations

from pathlib import Path

from proctor import __version__
from proctor.core import whole_folder, write_whole
from proctor.interchange.export_source import ExportSource, Written
from proctor.interchange.hugging_face import eval_yaml, yaml_text
from proctor.interchange.item_files import copy_media, facet_names, item_rows, lost_in_rows
from proctor.interchange.model_card import markdown_text

_LISTS = ("options", "accepted", "media")
_NUMBERS = ("start", "end")


def write_dataset_folder(source: ExportSource, out: Path) -> Written:
    """Writes `README.md`, `eval.yaml` and `data/test-00000-of-00001.parquet`; media below `out` by their names. Raises
    `InputError` where `out` is not empty or can't be written, and where a medium that is to be copied is missing."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, facets = item_rows(source), facet_names(source)
    names = list(rows[0]) if rows else []
    types = {name: pa.list_(pa.string()) for name in _LISTS} | {name: pa.float64() for name in _NUMBERS}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    with whole_folder(out) as folder:
        copied = copy_media(source, folder)
        (folder / "data").mkdir()
        table = pa.Table.from_pylist(rows, schema=schema)
        parquet.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
        write_whole(folder / "README.md", _card(source, facets))
        write_whole(folder / "eval.yaml", eval_yaml(source))
    dropped = lost_in_rows(source)
    if source.media_of_items and not copied:
        dropped.append(f"{len(source.media_of_items)} media: named, not copied (--copy-media)")
    notes = () if source.licence else ("Nobody says under which licence the data are: --origin licence=…",)
    return Written(len(rows), "item", tuple(dropped), notes)


def _card(source: ExportSource, facets: list[str]) -> str:
    card = source.card
    head: dict[str, object] = {"pretty_name": card.title}
    if source.licence:
        head["license"] = source.licence.lower()
    head |= {"tags": ["proctor", "benchmark"]}
    head["configs"] = [{"config_name": "default", "data_files": [{"split": "test", "path": "data/test-*.parquet"}]}]
    lines = ["---", yaml_text(head).rstrip(), "---", "", f"# {markdown_text(card.title)}", ""]
    groups = len({item.group for item in source.items})
    lines += [f"{len(source.items)} questions in {groups} groups, written by Proctor {__version__}."]
    lines += [f"Fingerprint `{source.store.fingerprint(card.name)}`.", ""]
    lines += ["What shares a `group` must be resampled together."]
    lines += [f"Facets: {', '.join(markdown_text(name) for name in facets)}."] if facets else []
    lines += [markdown_text(note) for note in card.notes]
    for name, text in (("Citation", source.origin.get("citation")), ("Made by", source.origin.get("creator"))):
        lines += ["", f"{name}: {markdown_text(text)}"] if text else []
    return "\n".join(lines) + "\n"
