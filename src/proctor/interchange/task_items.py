"""The items of an exported task, and what the programs that run it need of them: prompts, media, marks. The files that
`proctor export --format inspect-task|lmms-eval-task` writes call these."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from proctor.core import Answer, InputError, Item, ParseError, VideoClip, read_jsonl, validated
from proctor.interchange.export_source import references_of
from proctor.metrics import AccuracyScorer

if TYPE_CHECKING:
    from inspect_ai import Task


class TaskItem(BaseModel):
    """One line of a task's `items.jsonl`: the messages that are sent, and the item itself as JSON, by which its answer
    is read and marked. `media` is empty where the condition shows nothing."""

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
    """The items of a task's folder. Raises `InputError`, with the line, for what is none."""
    file = folder / "items.jsonl"
    lines = read_jsonl(file, "the items of an exported task")
    return [validated(TaskItem, line, file, place) for place, line in lines]


def marked(item: Item, text: str) -> float | None:
    """Accuracy of a reply, as Proctor marks it; None for an item that needs a judge, or has no reference.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import BinaryFormat
    >>> item = Item(id="q1", group="v1", question="Is it on?", answer=BinaryFormat(), reference=Reference(answer=True))
    >>> marked(item, "Answer: yes"), marked(item, "no"), marked(item, "perhaps")
    (1.0, 0.0, 0.0)
    """
    scorer = AccuracyScorer()
    if not scorer.applies(item):
        return None
    try:
        answer = Answer(item_id=item.id, text=text, parsed=item.answer.parse(text, item.options))
    except ParseError as error:
        answer = Answer(item_id=item.id, text=text, problem=str(error))
    return scorer.mark(item, answer).value


def media_of(one: TaskItem, media: str | Path) -> list[tuple[str, str]]:
    """(kind, path) of an item's media in the folder of media. Raises `InputError` where one is missing."""
    kinds = {medium.source: "video" if isinstance(medium, VideoClip) else "image" for medium in one.whole.media}
    found = []
    for name in one.media:
        file = Path(media) / name
        if not file.is_file():
            raise InputError(
                media, f"item {one.id}", found=f"no {name}", expected="the benchmark's media in this folder"
            )
        found.append((kinds[name], str(file)))
    return found


def inspect_task(folder: str | Path, media: str | Path = "") -> Task:
    """A task of Inspect from an exported folder: marks by Proctor's answer formats, with the standard error clustered
    by group. Raises `InputError` where the folder or a medium is missing."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, ContentVideo
    from inspect_ai.solver import generate

    samples = []
    for one in read_task(Path(folder)):
        content: list[Any] = []
        for kind, path in media_of(one, media):
            ending = Path(path).suffix.lower().removeprefix(".")
            content.append(ContentVideo(video=path, format=ending) if kind == "video" else ContentImage(image=path))
        content.append(ContentText(text=one.prompt))
        messages = [ChatMessageSystem(content=one.system), ChatMessageUser(content=content)]
        samples.append(Sample(messages, id=one.id, target=one.target, metadata={"group": one.group, "item": one.item}))
    return Task(dataset=MemoryDataset(samples, name=Path(folder).name), solver=generate(), scorer=_proctor_scorer())


def _proctor_scorer() -> Any:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    @scorer(metrics=[mean(), stderr(cluster="group")], name="accuracy")  # type: ignore[untyped-decorator]
    def accuracy() -> Any:
        async def score(state: Any, target: Any) -> Any:
            del target  # the item has its references
            value = marked(Item.model_validate_json(state.metadata["item"]), state.output.completion)
            return None if value is None else Score(value=value, answer=state.output.completion[:200])

        return score

    return accuracy()


class LmmsTask:
    """What the `utils.py` of a task of lmms-eval needs: its functions take a doc, which is a line of `items.jsonl`."""

    def __init__(self, media: str = "") -> None:
        self._media = media

    def visual(self, doc: dict[str, Any]) -> list[Any]:
        """Images as pictures, videos by their path."""
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
        """The messages, one below the other."""
        return f"{doc['system']}\n\n{doc['prompt']}"

    def results(self, doc: dict[str, Any], replies: list[str]) -> dict[str, float]:
        """The mark; nothing for an item that needs a judge."""
        value = marked(_item(doc["item"]), replies[0] if replies else "")
        return {} if value is None else {"accuracy": value}


@cache
def _item(text: str) -> Item:
    return Item.model_validate_json(text)


def task_line(item: Item, messages: tuple[str, str], *, blind: bool) -> TaskItem:
    """The line of an item."""
    right = references_of(item)
    return TaskItem(
        id=item.id,
        group=item.group,
        system=messages[0],
        prompt=messages[1],
        target=right[0] if right else "",
        media=[] if blind else list(dict.fromkeys(one.source for one in item.media)),
        item=item.model_dump_json(),
    )
