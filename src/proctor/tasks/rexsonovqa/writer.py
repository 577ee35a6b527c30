"""A copy of the release with other options: `benchmark_questions/` rewritten, everything but recorded results beside
it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.core import OPTION_POOL, Item, input_bytes, read_json, write_whole
from proctor.core.formats import option_letters
from proctor.tasks.rexsonovqa.native import KINDS, METADATA, item_id, options_at, read_questions

_BESIDE = (METADATA, "gt_all/*.json")  # `results` answer the published options


def write_choices(data: Path, out: Path, items: Mapping[str, Item | None]) -> None:
    """Writes the tree into `out`; items that are None stay, with `keep` false. Raises `InputError` for what can't be
    read."""
    for kind in KINDS:
        for file, video, questions in read_questions(data, kind):
            target = out / file.relative_to(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            known = [item_id(video, kind, number) for number in range(1, len(questions) + 1)]
            if not items.keys() & set(known):
                target.write_bytes(input_bytes(file))
                continue
            raw: Any = read_json(file)
            entries = [_entry(one, items, name) for one, name in zip(raw, known, strict=True)]
            write_whole(target, json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
    for pattern in _BESIDE:
        for file in sorted(one for one in data.glob(pattern) if one.is_file() and not one.is_symlink()):
            target = out / file.relative_to(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(input_bytes(file))


def _entry(raw: dict[str, Any], items: Mapping[str, Item | None], name: str) -> dict[str, Any]:
    if name not in items:
        return raw
    item = items[name]
    if item is None or item.reference is None:
        return raw | {"keep": False}
    stem = "\n".join(raw["question"].splitlines()[: options_at(raw["question"])])
    lines = [f"{letter}. {text}" for letter, text in zip(option_letters(len(item.options)), item.options, strict=True)]
    told = {"question": "\n".join([stem, *lines]), "answer": item.reference.answer}
    return raw | told | {"option_pool": item.tags[OPTION_POOL]}
