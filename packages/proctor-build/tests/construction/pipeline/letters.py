"""A small kind of project for tests: each source's letters, what a model says of each, and all of it together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from proctor.core import RefusalError
from proctor_build.pipeline import Made, ProjectKind, Record, Refused, Stage, StageSettings, WaitingError, Work

PROMPT = Path(__file__).with_name("letters.txt.j2")


class Letter(Record):
    text: str


class Said(BaseModel):
    word: str


class LettersSettings(StageSettings):
    upper: bool = False


class Letters(Stage[Letter]):
    name, summary = "letters", "Letters of a source"
    record, settings = Letter, LettersSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return (work.project.path(work.source, "transcript"),)

    async def make(self, work: Work) -> Made[Letter]:
        text = self.reads(work)[0].read_text().strip()
        text = text.upper() if work.settings(LettersSettings).upper else text
        if not text:
            raise WaitingError("somebody must write something")
        return Made([Letter(id=f"{work.unit}-{n}", text=letter) for n, letter in enumerate(text)])


class Words(Stage[Letter]):
    name, summary, after, roles, prompts = "words", "Words for letters", ("letters",), ("writer",), (PROMPT,)
    record = Letter

    async def make(self, work: Work) -> Made[Letter]:
        asker, made, refused = work.asker("writer", PROMPT), [], []
        for letter in work.records("letters", Letter):
            location = f"{letter.id}w"
            try:
                said, call = await asker.ask(Said, location, {"letter": letter.text})
            except RefusalError as error:
                refused.append(Refused.of(location, "no draft", "a word", str(error), (letter.id,)))
                continue
            if said.word.startswith(letter.text):
                made.append(Letter(id=location, text=said.word, made_from=(letter.id,), calls=(call,)))
            else:
                reason = f"a word that begins with {letter.text}"
                refused.append(Refused.of(location, "initial", reason, said.word, (letter.id,), (call,)))
        return Made(made, refused)


class Sentences(Stage[Letter]):
    name, summary, after, whole = "sentence", "All words", ("words",), True
    record = Letter

    async def make(self, work: Work) -> Made[Letter]:
        words = work.records("words", Letter)
        flags = ("short",) if len(words) < 3 else ()
        text = " ".join(one.text for one in words) or "-"
        made_from, calls = tuple(one.id for one in words), tuple(call for one in words for call in one.calls)
        return Made([Letter(id="sentence", text=text, made_from=made_from, calls=calls, flags=flags)])


LETTERS = ProjectKind("letters", "Letters", (Letters(), Words(), Sentences()), PROMPT)
