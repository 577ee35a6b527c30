"""A benchmark as a task of Inspect or of lmms-eval."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import (
    FPS,
    MAX_FRAMES,
    Answer,
    Excerpt,
    FrozenModel,
    InputError,
    Item,
    UsageError,
    VideoClip,
    count_of,
    json_line,
    read_answer,
    read_jsonl,
    read_model,
    reader_or_default,
    validated,
    whole_folder,
    write_whole,
)
from proctor.interchange.export_source import ExportSource, Written, copy_media, references_of
from proctor.interchange.hugging_face import yaml_text
from proctor.interchange.lmms_eval import task_name
from proctor.media import Excerpts, MediaLibrary, MediaSettings, view
from proctor.metrics import AccuracyScorer
from proctor.models import caption_of
from proctor.systems import Sent, frames_as_sent, prompt_for_benchmark, prompt_text

if TYPE_CHECKING:
    from inspect_ai import Task


class TaskItem(BaseModel):
    """One line of a task's `items.jsonl`: the messages, and the item as JSON, by which replies are parsed and scored.
    `media` is empty under a condition without media."""

    model_config = ConfigDict(frozen=True)

    id: str
    group: str
    system: str
    prompt: str
    target: str
    media: list[str]
    item: str

    @property
    def whole(self) -> Item:
        """The item."""
        return Item.model_validate_json(self.item)


def read_task(folder: Path) -> list[TaskItem]:
    """The items of a task's folder. Raises `InputError`, with the line, for an invalid one."""
    file = folder / "items.jsonl"
    lines = read_jsonl(file, "the items of an exported task")
    return [validated(TaskItem, line, file, row) for row, line in lines]


def scored(item: Item, text: str) -> float | None:
    """The accuracy of a reply by Proctor's scorer, which is read as that of a run; None for an item that needs a judge or has
    no reference.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import BinaryFormat
    >>> item = Item(id="q1", group="v1", question="Is it on?", answer=BinaryFormat(), reference=Reference(answer=True))
    >>> scored(item, "Answer: yes"), scored(item, "no"), scored(item, "perhaps")
    (1.0, 0.0, 0.0)
    >>> unseen = item.model_copy(update={"reference": Reference(answer=None, unanswerable=True)})
    >>> scored(unseen, "Answer: UNANSWERABLE"), scored(unseen, "Answer: yes")
    (1.0, 0.0)
    """
    scorer = AccuracyScorer()
    if not scorer.applies(item):
        return None
    return scorer.compute(item, read_answer(item, Answer(item_id=item.id, text=text))).value


def media_of(task_item: TaskItem, media: str | Path) -> list[tuple[str, str]]:
    """(kind, path) of an item's media in the folder of media. Raises `InputError` if one is missing."""
    kinds = {medium.source: "video" if isinstance(medium, VideoClip) else "image" for medium in task_item.whole.media}
    found = []
    for name in task_item.media:
        file = Path(media) / name
        if not file.is_file():
            raise InputError(
                media, f"item {task_item.id}", found=f"no {name}", expected="the benchmark's media in this folder"
            )
        found.append((kinds[name], str(file)))
    return found


class TaskAbout(FrozenModel):
    """What a task's `about.json` holds: the installed benchmark whose prompt it has, and how its videos
    were cut from longer ones."""

    benchmark: str = ""
    excerpts: dict[str, Excerpt] = Field(default_factory=dict)


def inspect_task(
    folder: str | Path, media: str | Path = "", *, frames: bool = True, fps: float = FPS, max_frames: int = MAX_FRAMES
) -> Task:
    """A task of Inspect from an exported folder: scored by Proctor's answer formats, with the standard error
    clustered by group.

    By default a model gets the frames that Proctor shows under `video`, of the span of each clip, with their times:
    `fps` a second, at most `max_frames`. Without `frames` it gets whole files, which few providers take of videos.
    Raises `InputError` if the folder or a medium is missing.
    """
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, ContentVideo
    from inspect_ai.solver import generate

    samples, lines = [], read_task(Path(folder))
    settings = MediaSettings(fps=fps, max_frames=max_frames)
    show = _frames_shown(Path(folder), media, settings, lines) if frames else []
    for task_item in lines:
        content: list[Any] = []
        for kind, path in () if frames else media_of(task_item, media):
            ending = Path(path).suffix.lower().removeprefix(".")
            content.append(ContentVideo(video=path, format=ending) if kind == "video" else ContentImage(image=path))
        content.append(ContentText(text=task_item.prompt))
        messages = [ChatMessageSystem(content=task_item.system), ChatMessageUser(content=content)]
        samples.append(
            Sample(
                messages,
                id=task_item.id,
                target=task_item.target,
                metadata={"group": task_item.group, "item": task_item.item, "media": task_item.media},
            )
        )
    dataset = MemoryDataset(samples, name=Path(folder).name)
    return Task(dataset=dataset, solver=[*show, generate()], scorer=_proctor_scorer())


def _frames_shown(folder: Path, media: str | Path, settings: MediaSettings, lines: Sequence[TaskItem]) -> list[Any]:
    """The solver that puts the frames of an item before its question, just before a model is asked. Raises `InputError`
    if media of these items are missing."""
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText
    from inspect_ai.solver import solver

    file = folder / "about.json"
    about = read_model(file, TaskAbout, "what an exported task is about") if file.is_file() else TaskAbout()
    library = MediaLibrary(Path(media) if media else None, settings, excerpts=Excerpts(about.excerpts))
    missing = library.missing([line.whole for line in lines if line.media])
    if missing:
        expected = "the benchmark's media in this folder: -T media=FOLDER"
        raise InputError(media or "media", found=f"no {missing[0]}", expected=expected)
    prompt, briefing = prompt_for_benchmark(about.benchmark), reader_or_default(about.benchmark).briefing

    @solver  # type: ignore[untyped-decorator]
    def proctor_frames() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            del generate  # the next solver asks the model
            if not state.metadata["media"]:
                return state
            item = Item.model_validate_json(state.metadata["item"])
            system, shown, user = await frames_as_sent(item, view(item, "video", library), prompt, briefing)
            content: list[Any] = []
            for frame in shown:
                content += [ContentText(text=caption)] if (caption := caption_of(frame)) else []
                picture = base64.b64encode(frame.jpeg).decode()
                content.append(ContentImage(image=f"data:image/jpeg;base64,{picture}"))
            content.append(ContentText(text=user))
            state.messages = [ChatMessageSystem(content=system), ChatMessageUser(content=content)]
            return state

        return solve

    return [proctor_frames()]


def _proctor_scorer() -> Any:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    @scorer(metrics=[mean(), stderr(cluster="group")], name="accuracy")  # type: ignore[untyped-decorator]
    def accuracy() -> Any:
        async def score(state: Any, target: Any) -> Any:
            del target  # the item has its references
            value = scored(Item.model_validate_json(state.metadata["item"]), state.output.completion)
            return None if value is None else Score(value=value, answer=state.output.completion[:200])

        return score

    return accuracy()


class LmmsTask:
    """The functions of an lmms-eval task's `utils.py`. A doc is a line of `items.jsonl`."""

    def __init__(self, media: str = "") -> None:
        self._media = media

    def visual(self, doc: dict[str, Any]) -> list[Any]:
        """Images as pictures, videos as paths."""
        from PIL import Image

        found: list[Any] = []
        for kind, path in media_of(TaskItem.model_validate(doc), self._media):
            if kind == "video":
                found.append(path)
            else:
                with Image.open(path) as picture:
                    found.append(picture.convert("RGB"))
        return found

    def text(self, doc: dict[str, Any]) -> str:
        """The messages, joined."""
        return f"{doc['system']}\n\n{doc['prompt']}"

    def results(self, doc: dict[str, Any], replies: list[str]) -> dict[str, float]:
        """The accuracy; nothing for an item that needs a judge."""
        value = scored(Item.model_validate_json(doc["item"]), replies[0] if replies else "")
        return {} if value is None else {"accuracy": value}


# -- writing tasks

_BLIND = "text-only"

_NOTE = "Proctor must be installed where the task runs: it parses and scores the answers."
_INSPECT = '''"""{title}: a task of Inspect, written by Proctor.

    inspect eval task.py --model openai/gpt-5.2 -T media=FOLDER

A model gets the frames that Proctor shows (-T fps=1 -T max_frames=64), or whole files: -T frames=false
"""

from collections.abc import Mapping
from pathlib import Path

from inspect_ai import Task, task

from proctor.interchange import inspect_task


@task
def {name}(media: str = {media!r}, frames: bool = True, fps: float = {FPS}, max_frames: int = {MAX_FRAMES}) -> Task:
    return inspect_task(Path(__file__).parent, media, frames=frames, fps=fps, max_frames=max_frames)
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
    """Writes `task.py`, `items.jsonl` and `about.json`. Raises `InputError` where `out` is not empty or can't be written, and
    `UsageError` for a condition other than `video` and `text-only`."""
    name = task_name(source.card.name, _condition(source))
    function = name if name.isidentifier() else f"task_{name}"
    text = _INSPECT.format(
        title=_title(source), name=function, media=_media(source, out), FPS=FPS, MAX_FRAMES=MAX_FRAMES
    )
    about = TaskAbout(benchmark=source.card.read_by, excerpts=source.card.excerpts)
    files = {"task.py": text, "about.json": about.model_dump_json(exclude_defaults=True) + "\n"}
    return _write(source, out, files, (_NOTE,), frames=True)


def write_lmms_eval_task(source: ExportSource, out: Path) -> Written:
    """Writes `NAME.yaml`, `utils.py` and `items.jsonl`; the task's name has the benchmark and the condition. Raises
    what `write_inspect_task` raises."""
    name = task_name(source.card.name, _condition(source))
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
    text = _LMMS.format(title=_title(source), name=name, media=_media(source, out))
    moved = "The YAML has the present path of items.jsonl: change `data_files` when you move the folder."
    return _write(source, out, {f"{name}.yaml": yaml_text(head) + functions, "utils.py": text}, (moved, _NOTE))


def _write(
    source: ExportSource, out: Path, files: Mapping[str, str], notes: tuple[str, ...], *, frames: bool = False
) -> Written:
    """Writes the files of a task beside its items and copied media. With `frames` the task cuts frames as Proctor
    does."""
    lines = _lines(source)
    with whole_folder(out) as folder:
        write_whole(folder / "items.jsonl", "".join(map(json_line, lines)))
        for name, text in files.items():
            write_whole(folder / name, text)
        copy_media(source, folder / "media")
    return Written(len(lines), "item", _dropped(source, frames=frames), notes)


def _condition(source: ExportSource) -> str:
    conditions = source.options.conditions or ("video",)
    if len(conditions) > 1 or conditions[0] not in {"video", _BLIND}:
        raise UsageError(f"--condition {', '.join(conditions)} needs Proctor's views: choose video or {_BLIND}.")
    return conditions[0]


def _lines(source: ExportSource) -> list[TaskItem]:
    if not source.references:
        raise UsageError("A task scores answers by its references. Leave --no-references out.")
    blind = _condition(source) == _BLIND
    sounding = sum(bool(item.sounding) for item in source.items)
    if sounding and not blind:
        raise UsageError(
            f"{count_of(sounding, 'question')} with sound: the program that runs the task shows whole files. Give --condition {_BLIND}."
        )
    prompt = prompt_for_benchmark(source.card.read_by)
    briefing = reader_or_default(source.card.read_by).briefing
    lines = []
    for item in source.items:
        shown = () if blind else item.media
        video = any(isinstance(medium, VideoClip) for medium in shown)
        sent = Sent(len(shown), timed=False, video=video, blind=blind and bool(item.media))
        system, user = prompt_text(prompt, item, briefing, sent)
        line = TaskItem(
            id=item.id,
            group=item.group,
            system=system,
            prompt=user,
            target=next(iter(references_of(item)), ""),
            media=list(dict.fromkeys(one.source for one in shown)),
            item=item.model_dump_json(),
        )
        lines.append(line)
    return lines


def _media(source: ExportSource, out: Path) -> str:
    if source.copy_media:
        return str(out.resolve() / "media")
    return "" if source.media is None else str(source.media.resolve())


def _title(source: ExportSource) -> str:
    """The title, safe in a docstring."""
    plain = "".join(sign if sign.isalnum() or sign in " .,:-()" else " " for sign in source.card.title)
    return " ".join(plain.split()) or source.card.name


def _dropped(source: ExportSource, *, frames: bool) -> tuple[str, ...]:
    spans = any(
        isinstance(medium, VideoClip) and (medium.start or medium.end) for item in source.items for medium in item.media
    )
    judged = sum(item.answer.kind in {"free_text", "ratings"} for item in source.items)
    found = [] if frames else ["frames at given times: the program that runs the task chooses frames of whole files"]
    if spans and not frames:
        found.append("spans of clips: whole videos are shown; cut the videos first if questions are about a part")
    if judged:
        found.append(
            f"scores of {count_of(judged, 'item')} in free text: they need a judge; import the log into Proctor"
        )
    return tuple(found)
