"""Fifty-eight command lines of new users, fifty-three of them wrong, each with what its line must say.

A message is graded by four criteria: it names the mistake first (the wrong word stands at its beginning), it says what to do
next (a command, an option, or the choices), it is one line, and it has no jargon (of a library, or "found none, expected …"
where a sentence is needed). All four: A; three: B; two: C; fewer, or no message at all: D.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor

_JARGON = re.compile(
    r"Input should|Field required|valid integer|Extra inputs|Value error|Traceback|pydantic|NoneType|KeyError|Errno"
    r"|found none|found it\b|found neither|expected none|expected it\b|expected some"
)
_TO_DO = re.compile(
    r"--[a-z]|\bproctor |\bDid you mean|did you mean|\bone of\b|\bexpected\b|\b(?:Give|Choose|Add|Write|Leave|Name|Run|Put)\b"
)
_BEGINNING = 110  # characters
_TOLD = ("Name: ", "Columns: ", "Answer formats: ", "Asked more than once", "Groups: ")


@dataclass(frozen=True)
class Wrong:
    """A command line, the word of it that is wrong, what its message must say as well, and the exit code."""

    words: str
    mistake: str
    also: str = ""
    code: int = 1

    @property
    def name(self) -> str:
        return self.words


@dataclass(frozen=True)
class Graded:
    """What a command said, and the criteria that it meets."""

    line: str
    first: bool
    to_do: bool
    one_line: bool
    plain: bool

    @property
    def grade(self) -> str:
        return "DDCBA"[self.first + self.to_do + self.one_line + self.plain] if self.line else "D"


WRONG = (
    # names
    Wrong("run rexsonvqa --data . --system random", "'rexsonvqa'", "did you mean 'rexsonovqa'?"),
    Wrong("run u1 --model opnai:gpt-5.2", "opnai", "did you mean openai:gpt-5.2?"),
    Wrong("run u1 --system random --condition vidoe", "'vidoe'", "did you mean 'video'?"),
    Wrong("run u1 --model openai:m --settings temperatur=0", "'temperatur'", "did you mean 'temperature'?"),
    Wrong("run u1 --system randm", "'randm'", "did you mean 'random'?"),
    Wrong("score u1 --metric rouge-7 --store runs.db", "rouge-7", "rouge-l"),
    Wrong("results u1 --metric acuracy --store runs.db", "'acuracy'", "did you mean 'accuracy'?"),
    Wrong("results u1 --system alfa --store runs.db", "'alfa'", "did you mean 'alpha'?"),
    Wrong(
        "score u1 --judge gpt-5.2 --model openai:m --store runs.db", "'gpt-5.2'", "A model that judges goes by --model"
    ),
    Wrong("results u1 --by tpic --store runs.db", "'tpic'", "did you mean 'topic'?"),
    Wrong("show u1 q99 --store runs.db", "'q99'", "one of q0"),
    Wrong("list frogs", "'frogs'", "'systems'", 2),
    Wrong("analyse u1", "'analyse'", "proctor analyze", 2),
    Wrong("result u1", "'result'", "Did you mean 'proctor results'?", 2),
    Wrong("train judge u1", "'judge'", "proctor train", 2),
    Wrong("run u1 --modle openai:m", "--modle", "Did you mean --model?", 2),
    # models and servers
    Wrong("run u1 --model openai:gpt-5.2 --condition text-only", "openai:gpt-5.2", "OPENAI_API_KEY"),
    Wrong(
        "run u1 --model m --base-url localhost:8000/v1", "localhost:8000/v1", "did you mean http://localhost:8000/v1?"
    ),
    Wrong("run u1 --model m --base-url {dead} --condition text-only --store new.db", "{dead}", "server"),
    Wrong(
        "run u1 --model m --base-url {without} --condition text-only --store new.db",
        "{without}",
        "--base-url {without}/v1",
    ),
    Wrong("run u1 --model openai:m --concurrency 0", "--concurrency 0", "give at least 1", 2),
    Wrong("run u1 --model openai:m --max-side wide", "--max-side wide", "give a whole number", 2),
    Wrong("run u1 --model openai:m --settings temperature 0", "--settings temperature", "temperature=0", 2),
    Wrong("run u1 --model openai:m --price cheap", "--price 'cheap'", "0.15/0.60", 2),
    # what is missing
    Wrong("run rexsonovqa --system random", "--data is missing", "--data rexsonovqa", 2),
    Wrong("run u1", "Nothing to ask", "--system", 2),
    Wrong("export u1 --store runs.db", "--out is missing", "proctor export", 2),
    Wrong("score u1 --store runs.db", "Nothing to score with", "--metric", 2),
    Wrong("audit --scores scores.csv", "--scores also needs --ratings", "--ratings FILE", 2),
    Wrong("check focus", "FILE is missing", "proctor check focus", 2),
    Wrong("compare u1 --system alpha --store one.db", "Only alpha / text-only matches", "--system"),
    Wrong("rank u1 --store runs.db", "no run under video", "--condition text-only"),
    Wrong("audit u1 --store runs.db", "no ratings of u1", "proctor import u1"),
    # files and folders
    Wrong("check nothing.csv", "nothing.csv", "a folder or a file with questions"),
    Wrong("check question.csv", "question.csv", "did you mean 'questions.csv'?"),
    Wrong("check u1 --media nowhere", "nowhere", "folder"),
    Wrong("check notes.docx", "notes.docx", ".csv"),
    Wrong("check plain.csv", "plain.csv", "--map question=COLUMN"),
    Wrong("results u1 --store run.db", "run.db", "did you mean 'runs.db'?"),
    Wrong("results u1 --store questions.csv", "questions.csv", "expected a store"),
    Wrong("new u1", "u1", "a new or an empty folder"),
    Wrong("build new u1 --kind rexsonovqa", "u1", "a new or an empty folder"),
    Wrong("build run u1", "u1", "proctor build new"),
    Wrong("serve .", "no review.yaml", "proctor challenge new"),
    Wrong("reproduce --published nowhere", "nowhere", "a folder with recorded answers"),
    Wrong("audit items u1", "proctor.db", "--store"),
    Wrong(
        "import u1 results/gemini --name g --store runs.db", "results/gemini", "did you mean 'results/gemini-3-pro'?"
    ),
    Wrong("import u1 answers.csv --name g --answer-column foo --store runs.db", "'foo'", "said", 2),
    Wrong("import u1 unknown.csv --name g --store runs.db", "unknown.csv", "q77"),
    Wrong("check rexsonovqa answers.csv", "--data is missing", "--data FOLDER", 2),
    Wrong("challenge try image own", "own holds no challenge.yaml", "--benchmark", 2),
    Wrong("report u1 --out report.pdf --store runs.db", "report.pdf", ".html"),
    Wrong("check letters.csv", "letters.csv", "columns A, B, C"),
)

RIGHT = (
    "results questions --store runs.db",
    "results u1/questions.csv --store runs.db",
    "show u1 --store runs.db",
    "list runs --store runs.db",
)
"""What sounds odd and is accepted."""

_FUNCTIONS = """
def alpha(item, view):
    return "yes"
def beta(item, view):
    return "no"
"""


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a new user has it after an hour: questions, two systems, a few files."""
    where = tmp_path_factory.mktemp("invocations")
    rows = "".join(f"q{number},Is it on?,yes,{'a' if number % 2 else 'b'},p{number}\n" for number in range(6))
    table = f"id,question,answer,topic,patient\n{rows}"
    (where / "u1").mkdir()
    (where / "own").mkdir()
    (where / "results" / "gemini-3-pro").mkdir(parents=True)
    for file, text in {
        "u1/questions.csv": table, "own/questions.csv": table, "questions.csv": table, "fn.py": _FUNCTIONS,
        "notes.docx": "PK", "plain.csv": "name,ward\nx,y\n", "letters.csv": "Question,Correct answer,patient\nWhich?,A,p\n",
        "scores.csv": "item,system,value\nq1,a,1\n", "answers.csv": "id,said\nq1,yes\n", "unknown.csv": "id,answer\nq77,yes\n",
    }.items():  # fmt: skip
        (where / file).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        for store, systems in (("runs.db", ("alpha", "beta")), ("one.db", ("alpha",))):
            chosen = [word for name in systems for word in ("--system", f"fn.py:{name}")]
            done = proctor("run", "u1", *chosen, "--condition", "text-only", "--store", store)
            assert done.returncode == 0, done.stderr
    return where


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """An address where nobody listens, and one without its path."""
    with FaultyServer("yes") as server:
        yield {"dead": "http://127.0.0.1:9/v1", "without": server.url.removesuffix("/v1")}


def graded(wrong: Wrong, done: object) -> Graded:
    """The grade of what a command said."""
    out, err, code = (getattr(done, name) for name in ("stdout", "stderr", "returncode"))
    lines = [line for line in err.splitlines() if line.strip()]
    if wrong.words.startswith("run "):  # what was read is told before it is asked about
        lines = [line for line in lines if not line.startswith(_TOLD)]
    if wrong.words.startswith("check ") and not lines[-1:][0].startswith("proctor: "):
        lines = [line for line in out.splitlines() if line.strip()][:1]  # a list of faults, and their number below it
    line = lines[-1].removeprefix("proctor: ") if lines and code else ""
    return Graded(
        line,
        wrong.mistake in line[:_BEGINNING],
        _TO_DO.search(line) is not None,
        len(lines) == 1,
        not _JARGON.search("\n".join(lines)),
    )


def said(wrong: Wrong, locations: dict[str, str]) -> tuple[Wrong, object]:
    """The command line with real addresses, and what it said."""
    texts = [wrong.words, wrong.mistake, wrong.also]
    for name, url in locations.items():
        texts = [text.replace(f"{{{name}}}", url) for text in texts]
    words, mistake, also = texts
    known = Wrong(words, mistake, also, wrong.code)
    return known, proctor(*shlex.split(words), OPENAI_API_KEY="", PROCTOR_STORE="")


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_invocation_says_what_is_wrong_and_what_to_do(
    wrong: Wrong, location: Path, servers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(location)
    known, done = said(wrong, servers)
    found = graded(known, done)
    assert done.returncode == wrong.code, found.line  # type: ignore[attr-defined]
    assert known.also in found.line
    assert found.grade in "AB", found
    _GRADES[wrong.words] = found.grade


_GRADES: dict[str, str] = {}


@pytest.mark.usefixtures("location", "servers")  # in the process that runs all others of this file
def test_at_least_45_of_them_are_clear_at_once() -> None:
    """After all others of this file: none is below B, and 45 are A."""
    if len(_GRADES) < len(WRONG):
        pytest.skip("not all of them were tried")
    assert Counter(_GRADES.values())["A"] >= 45, {words for words, grade in _GRADES.items() if grade != "A"}


@pytest.mark.parametrize("words", RIGHT)
def test_what_is_meant_and_clear_is_accepted(words: str, location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(location)
    assert proctor(*shlex.split(words)).returncode == 0


def test_there_are_58() -> None:
    assert len(WRONG) + len(RIGHT) == 57
    assert len({wrong.words for wrong in WRONG}) == len(WRONG)
