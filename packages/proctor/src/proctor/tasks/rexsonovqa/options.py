"""Copies of the release with other options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor import core
from proctor.core.formats import option_letters
from proctor.tasks.rexsonovqa.native import KINDS, METADATA, item_id, options_at, read_questions

_BESIDE = (METADATA, "gt_all/*.json")  # not `results`, which are for the published options


class SonoOptions:
    """Writes the release again (see `proctor.core.OptionWriter`)."""

    exchange_within = ("question_type", "category")

    def write_choices(self, data: Path, out: Path, items: Mapping[str, core.Item | None]) -> None:
        """Writes a copy of the release with other options into `out`, without recorded results; items that are None stay,
        with `keep` false. Raises `InputError` for what can't be read."""
        for kind in KINDS:
            for file, video, questions in read_questions(data, kind):
                target = out / file.relative_to(data)
                target.parent.mkdir(parents=True, exist_ok=True)
                known = [item_id(video, kind, number) for number in range(1, len(questions) + 1)]
                if not items.keys() & set(known):
                    target.write_bytes(core.input_bytes(file))
                    continue
                raw: Any = core.read_json(file)
                entries = [_entry(one, items, name) for one, name in zip(raw, known, strict=True)]
                core.write_whole(target, json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
        about = core.read_about(data)
        if about is not None:
            changed = {
                "name": f"{about.name[:71]}-repaired" if about.name else "",
                "title": f"{about.title[:178]} with repaired options" if about.title else "",
            }
            content = about.model_copy(update=changed).model_dump(mode="json")
            core.write_whole(out / core.ABOUT, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        for pattern in _BESIDE:
            for file in sorted(path for path in data.glob(pattern) if path.is_file() and not path.is_symlink()):
                target = out / file.relative_to(data)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(core.input_bytes(file))


OPTIONS = SonoOptions()


def _entry(raw: dict[str, Any], items: Mapping[str, core.Item | None], name: str) -> dict[str, Any]:
    if name not in items:
        return raw
    item = items[name]
    if item is None or item.reference is None:
        return raw | {"keep": False}
    stem = "\n".join(raw["question"].splitlines()[: options_at(raw["question"])])
    lines = [f"{letter}. {text}" for letter, text in zip(option_letters(len(item.options)), item.options, strict=True)]
    changed = {"question": "\n".join([stem, *lines]), "answer": item.reference.answer}
    return raw | changed | {"option_pool": item.tags[core.OPTION_POOL]}
