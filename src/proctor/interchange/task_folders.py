"""A benchmark as a task of Inspect or of lmms-eval: a folder with its items, and the few lines that these programs
load."""

from __future__ import annotations

from pathlib import Path

from proctor.core import UsageError, VideoClip, count_of, reader_or_default, whole_folder, write_whole
from proctor.interchange.export_source import ExportSource, Written
from proctor.interchange.hugging_face import yaml_text
from proctor.interchange.item_files import copy_media
from proctor.interchange.lmms_eval import task_name
from proctor.interchange.task_items import TaskItem, task_line
from proctor.systems import prompt_for_benchmark, prompt_text

_BLIND = "text-only"

_INSPECT = '''"""{title}: a task of Inspect, written by Proctor.

    inspect eval task.py --model openai/gpt-5.2 -T media=FOLDER
"""

from pathlib import Path

from inspect_ai import Task, task

from proctor.interchange import inspect_task


@task
def {name}(media: str = {media!r}) -> Task:
    return inspect_task(Path(__file__).parent, media)
'''

_LMMS = '''"""{title}: a task of lmms-eval, written by Proctor.

    lmms_eval --tasks {name} --include_path FOLDER --model qwen2_5_vl --model_args pretrained=...
"""

from proctor.interchange import LmmsTask

MEDIA = {media!r}  # the folder of the benchmark's videos or images

_TASK = LmmsTask(MEDIA)


def doc_to_visual(doc):
    return _TASK.visual(doc)


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    return _TASK.text(doc)


def process_results(doc, results):
    return _TASK.results(doc, results)
'''


def write_inspect_task(source: ExportSource, out: Path) -> Written:
    """Writes `task.py` and `items.jsonl`. Raises `InputError` where `out` is not empty or can't be written, and
    `UsageError` for another condition than `video` and `text-only`."""
    condition, lines = _condition(source), _lines(source)
    name = task_name(source.card.name, condition)
    with whole_folder(out) as folder:
        write_whole(folder / "items.jsonl", _jsonl(lines))
        text = _INSPECT.format(title=_title(source), name=_identifier(name), media=_media(source, out))
        write_whole(folder / "task.py", text)
        copy_media(source, folder / "media")
    return Written(len(lines), "item", _dropped(source), _notes())


def write_lmms_eval_task(source: ExportSource, out: Path) -> Written:
    """Writes `NAME.yaml`, `utils.py` and `items.jsonl`; the task's name is the benchmark's with the condition. Raises
    as `write_inspect_task` does."""
    condition, lines = _condition(source), _lines(source)
    name = task_name(source.card.name, condition)
    head = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(out.resolve() / "items.jsonl")}},
        "test_split": "test",
        "output_type": "generate_until",
        "cluster_key": "group",
        "doc_to_target": "target",
        "generation_kwargs": {"max_new_tokens": 1024, "temperature": 0, "do_sample": False},
        "metric_list": [{"metric": "accuracy", "aggregation": "mean", "higher_is_better": True}],
        "metadata": [{"version": 1.0, "fingerprint": source.store.fingerprint(source.card.name)}],
    }
    functions = "".join(
        f"{one}: !function utils.{one}\n" for one in ("doc_to_visual", "doc_to_text", "process_results")
    )
    with whole_folder(out) as folder:
        write_whole(folder / "items.jsonl", _jsonl(lines))
        write_whole(folder / f"{name}.yaml", yaml_text(head) + functions)
        text = _LMMS.format(title=_title(source), name=name, media=_media(source, out))
        write_whole(folder / "utils.py", text)
        copy_media(source, folder / "media")
    moved = "The YAML names items.jsonl where it lies now: change `data_files` when you move the folder."
    return Written(len(lines), "item", _dropped(source), (moved, *_notes()))


def _condition(source: ExportSource) -> str:
    conditions = source.options.conditions or ("video",)
    if len(conditions) > 1 or conditions[0] not in {"video", _BLIND}:
        raise UsageError(
            "--condition", f"video or {_BLIND}: the others need Proctor's views", found=", ".join(conditions)
        )
    return conditions[0]


def _lines(source: ExportSource) -> list[TaskItem]:
    if not source.references:
        raise UsageError("--no-references", "none: a task marks answers by its references", found="it")
    blind = _condition(source) == _BLIND
    sounding = sum(bool(item.sounding) for item in source.items)
    if sounding and not blind:
        expected = f"{_BLIND}: the program that runs the task shows whole files, and sound belongs to the questions"
        raise UsageError("--condition", expected, found=f"{count_of(sounding, 'question')} with sound")
    prompt = prompt_for_benchmark(source.card.name)
    briefing = reader_or_default(source.card.name).briefing
    lines = []
    for item in source.items:
        shown = () if blind else item.media
        video = any(isinstance(medium, VideoClip) for medium in shown)
        messages = prompt_text(
            prompt, item, briefing, pictures=len(shown), timed=False, video=video, blind=blind and bool(item.media)
        )
        lines.append(task_line(item, messages, blind=blind))
    return lines


def _jsonl(lines: list[TaskItem]) -> str:
    return "".join(line.model_dump_json() + "\n" for line in lines)


def _media(source: ExportSource, out: Path) -> str:
    if source.copy_media:
        return str(out.resolve() / "media")
    return "" if source.media is None else str(source.media.resolve())


def _title(source: ExportSource) -> str:
    """Letters, digits and spaces of the title: it stands in a docstring."""
    plain = "".join(sign if sign.isalnum() or sign in " .,:-()" else " " for sign in source.card.title)
    return " ".join(plain.split()) or source.card.name


def _identifier(name: str) -> str:
    return name if name.isidentifier() else f"task_{name}"


def _notes() -> tuple[str, ...]:
    return ("Proctor must be installed where the task runs: it reads and marks the answers.",)


def _dropped(source: ExportSource) -> tuple[str, ...]:
    spans = any(isinstance(one, VideoClip) and (one.start or one.end) for item in source.items for one in item.media)
    judged = sum(item.answer.kind in {"free_text", "ratings"} for item in source.items)
    found = ["frames at set times: the program that runs the task chooses its own from whole files"]
    found += ["spans of clips: whole videos are shown; cut them first where questions are on a part"] if spans else []
    found += (
        [f"marks of {count_of(judged, 'item')} in free text: they need a judge; import the log to Proctor"]
        if judged
        else []
    )
    return tuple(found)
