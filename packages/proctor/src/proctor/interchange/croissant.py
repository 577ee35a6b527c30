"""Croissant 1.1: what a benchmark consists of, as JSON-LD that dataset search engines and loaders read."""

from __future__ import annotations

import json
import mimetypes
from hashlib import sha256
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core import count_of, json_line, whole_folder, write_whole
from proctor.interchange.export_source import (
    COLUMNS,
    ExportSource,
    Written,
    copy_media,
    facet_names,
    file_hash,
    item_rows,
    lost_in_rows,
    media_files,
)
from proctor.interchange.licences import licence_address

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
_RAI = "http://mlcommons.org/croissant/RAI/1.0"
_LISTS = ("options", "accepted", "media")
_DESCRIPTIONS = {
    "id": "the item's id",
    "group": "what must be resampled together: a video, a patient",
    "question": "what is asked",
    "options": "the options of a choice, in order",
    "format": "the answer's format",
    "answer": "the reference answer, as a reply would write it",
    "accepted": "further answers that count as right",
    "rationale": "why the answer is right",
    "media": "videos and images by file",
    "start": "where the clip begins, in seconds of its video",
    "end": "where the clip ends, in seconds of its video",
}


def write_croissant(source: ExportSource, out: Path) -> Written:
    """Writes a folder with `croissant.json` and `items.jsonl`: a FileObject for the items and one for each medium in
    the folder of media, with its SHA-256. Raises `InputError` where `out` is not empty or can't be written."""
    rows = item_rows(source)
    text = "".join(map(json_line, rows))
    files = dict(media_files(source))
    with whole_folder(out) as folder:
        copy_media(source, folder)
        write_whole(folder / "items.jsonl", text)
        record = _record(source, text, files)
        write_whole(folder / "croissant.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    absent = len(source.media_of_items) - len(files)
    dropped = lost_in_rows(source)
    if absent:
        dropped.append(f"media without a FileObject: {absent}; missing files can't be hashed (--media)")
    notes = [] if source.licence else ["Croissant needs a licence: --origin licence=…"]
    notes += [] if source.origin.get("creator") else ["Croissant needs a creator: --origin creator=…"]
    return Written(len(rows), "item", tuple(dropped), tuple(notes))


def _record(source: ExportSource, text: str, files: dict[str, Path]) -> dict[str, Any]:
    card, origin = source.card, source.origin
    content = sha256(text.encode()).hexdigest()
    items = _file("items.jsonl", "items.jsonl", "application/jsonlines", content, len(text.encode()))
    found: dict[str, Any] = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "name": card.name,
        "description": f"{card.title}: {count_of(len(source.items), 'question')}. {' '.join(card.notes)}".strip(),
        "conformsTo": [CONFORMS_TO, _RAI],
        "version": "1.0.0",
        "datePublished": max(source.begun.values(), default="1970-01-01")[:10],
        "url": origin.get("url", "https://example.org"),
        "identifier": source.store.fingerprint(card.name),
        "distribution": [items, *(_medium(name, file) for name, file in files.items())],
        "recordSet": [_record_set(source)],
        "rai:dataUseCases": "Evaluation of multimodal models on clinical procedures; not for training.",
        "rai:dataCollection": f"Exported by Proctor {__version__}.",
    }
    optional = {"license": licence_address(source.licence), "citeAs": origin.get("citation", "")}
    found |= {name: value for name, value in optional.items() if value}
    if "url" not in origin:
        del found["url"]
    if origin.get("creator"):
        found["creator"] = {"@type": "sc:Organization", "name": origin["creator"]}
    if card.simulated:
        found["rai:dataCollectionType"] = "Simulated"
    return found


def _file(identity: str, url: str, kind: str, content: str, size: int) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": identity,
        "name": identity,
        "contentUrl": url,
        "contentSize": f"{size} B",
        "encodingFormat": kind,
        "sha256": content,
    }


def _medium(name: str, file: Path) -> dict[str, Any]:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return _file(name, name, kind, file_hash(file), file.stat().st_size)


def _record_set(source: ExportSource) -> dict[str, Any]:
    fields = [*COLUMNS, *facet_names(source)]
    return {"@type": "cr:RecordSet", "@id": "items", "name": "items", "key": {"@id": "items/id"},
            "field": [_field(name) for name in fields]}  # fmt: skip


def _field(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"items/{name}",
        "name": f"items/{name}",
        "description": _DESCRIPTIONS.get(name, "a facet"),
        "dataType": "sc:Float" if name in {"start", "end"} else "sc:Text",
        "source": {"fileObject": {"@id": "items.jsonl"}, "extract": {"column": name}},
    }
    if name in _LISTS:
        found |= {"isArray": True, "arrayShape": "-1"}
    return found


def _context() -> dict[str, Any]:
    """The specification's context."""
    own = (
        "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty",
        "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5", "parentField",
        "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source",
        "subField", "transform",
    )  # fmt: skip
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "sc": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "name": {"@container": "@language"},
        "description": {"@container": "@language"},
        **{name: f"cr:{name}" for name in own},
    }
