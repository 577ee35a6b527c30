"""What commands print, to the letter: tables, notes, messages and exit codes on one made-up store, each session a file.

The numbers in it are held elsewhere (`tests/runs/*_recomputed.py`); here nothing that a person reads changes unseen:
headings, order of rows and columns, signs, what is said beside them, and how a command ends. After a change that is
meant, look at the difference:
`PROCTOR_UPDATE_SNAPSHOTS=1 pytest tests/cli/test_sessions_are_kept.py; git diff tests/cli/snapshots`.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import ColorSystem

from proctor.cli import output
from tests.support.fuzzed_store import fuzzed
from tests.support.program import proctor, within_terminal
from tests.support.snapshot import assert_frozen
from tests.support.text_folder import write_text_folder

SESSIONS = {
    "results": """
        results fuzzed --draws 100
        results fuzzed --draws 100 --failed wrong --by level --metric accuracy --two-level --seed 3
        results fuzzed --draws 100 --failed exclude --condition text-only --system alpha --system random --all-items
        results fuzzed --draws 100 --by area --metric helpful --system beta --format csv
        results fuzzed --flags
        results fuzzed --flags --metric accuracy
        results fuzzed --protocol official
        results fuzzed --by levle
        results fuzzed --metric acuracy
        results fuzzed --system alhpa
        results nothing
    """,
    "explain": """
        explain alpha/video beta/video --draws 100 --scorer code
        explain alpha/video beta/video --draws 100 --scorer code --failed wrong --failed exclude --format json
        explain alpha/video alpha/text-only --draws 100 --metric helpful --format csv
        explain alpha beta
        explain alpha/video nothing
        explain alpha/video beta/video --ask --scorer code
    """,
    "compare": """
        compare fuzzed --draws 100 --metric accuracy --metric helpful --system beta
        compare fuzzed --draws 100 --failed wrong --condition video --metric unresolved --metric effort
        compare fuzzed --draws 100 --against random/text-only --condition text-only --metric accuracy
        compare fuzzed --draws 100 --system alpha/video --system gamma/text-only --by level
        compare fuzzed --draws 100 --system alpha/video --system gamma/text-only --by level --format csv
        compare fuzzed --draws 100 --system random
        compare fuzzed --draws 100 --against alpha
        compare fuzzed --draws 100 --system alpha --condition video
    """,
    "rank": """
        rank fuzzed --draws 100 --stability 20
        rank fuzzed --draws 100 --stability 20 --failed wrong --detail --mine beta --publish
        rank fuzzed --draws 100 --stability 0 --failed wrong --by area --correction none --mine delta --two-level --seed 2
        rank fuzzed --draws 100 --stability 0 --failed wrong --baseline none --condition text-only --format csv
        rank fuzzed --draws 100 --stability 0 --failed wrong --mine gamma --baseline delta --format tsv
        rank fuzzed --draws 100 --stability 0 --failed exclude --baseline random --baseline delta
        rank fuzzed --draws 100 --stability 0 --mine nobody
        rank fuzzed --draws 100 --stability 0 --failed wrong --mine nobody
        rank fuzzed --draws 100 --condition black
    """,
    "analyze": """
        analyze fuzzed --draws 100 --stability 0 --failed wrong
        analyze fuzzed --draws 100 --stability 0 --failed exclude --baseline none --two-level --seed 4 --out FOLDER/analysis
        analyze fuzzed --format csv
        analyze fuzzed --baseline nobody
    """,
    "show": """
        show fuzzed
        show fuzzed --all-items
        show fuzzed --by level,format
        show fuzzed --by level --format csv
        show fuzzed q003 --system alpha
        show fuzzed q004 --condition text-only --prompt
        show fuzzed q004 --format csv
        show fuzzed q999
        list runs --store STORE
        audit items fuzzed --draws 100 --top 2
        audit items fuzzed --draws 100 --all-items --format csv
    """,
    "store": """
        check store
        store change rename fuzzed --system alpha --to omega
        store change rename fuzzed --system alpha --to beta --yes
        store change rename fuzzed --system alpha --to omega --yes
        store change delete fuzzed
        store change delete fuzzed --all --system omega
        store change delete fuzzed --system omega --condition video --yes
        store change delete fuzzed --system omega --condition video --yes
        store change disqualify fuzzed --system nobody --reason why
        import fuzzed FOLDER/nothing.csv --decided-by anna
        export fuzzed --out FOLDER/rows.csv
        export fuzzed --out FOLDER/open.csv --format unresolved --system beta
        export fuzzed --out FOLDER/said.jsonl --format judgements --scorer panel[m] --condition video
        export fuzzed --out FOLDER/said.jsonl --format judgements --scorer nobody
        export fuzzed --out FOLDER/rows.xyz
        list runs --store STORE
        store change delete fuzzed --all --yes
        list runs --store STORE
    """,
    "score": """
        score fuzzed --metric rouge-l-best
        score fuzzed --metric rouge-1-best --metric bleu-mean --system beta
        score fuzzed --metric chrf-mean --format json
        score fuzzed
        score fuzzed --judge panel
        score fuzzed --metric rouge-l-best --model x
        score fuzzed FOLDER/p.json --model x
        score fuzzed FOLDER/p.json
        reproduce fuzzed
        check fuzzed FOLDER/p.json
        reproduce --published FOLDER/nothing
    """,
    "report": """
        report fuzzed --draws 100 --failed wrong --out FOLDER/report.html
        report fuzzed --draws 100 --out FOLDER/public.html --publish --pseudonyms
        report fuzzed --pseudonyms
        report fuzzed --media FOLDER/nothing
        report fuzzed --publish --media FOLDER
    """,
    "audit": """
        audit --scores SCORES --ratings RATINGS --draws 100
        audit --scores SCORES --ratings RATINGS --draws 100 --dimension quality --seed 2
        audit --scores ONE --ratings RATINGS --draws 100
        audit --scores ONE --ratings RATINGS --draws 0
        audit --scores ONE --ratings RATINGS --draws 100 --format csv
        audit --scores ONE
        audit
        audit fuzzed
        audit fuzzed --protocol official
    """,
    "pool": """
        export fuzzed --out FOLDER/sums.json --format sums
        results --pool FOLDER/sums.json --draws 100
        results --pool FOLDER/sums.json --draws 100 --seed 2 --format csv
        results --pool FOLDER/sums.json --pool FOLDER/sums.json
        results --pool FOLDER/nothing.json
    """,
    "list": """
        list runs --store STORE --format csv
        list metrics --store STORE
        list metrics --store STORE --format csv
        list conditions
        list conditions --format csv
        list systems
        list methods
        list judges
        list nothing
    """,
    "help": """
        --help
        judge --help
        store --help
        rank --help
    """,
    "run": """
        run simulated --data QUESTIONS --condition text-only --system random --system majority --dry-run
        run simulated --data QUESTIONS --condition text-only --system random --system majority
        run simulated --condition text-only --system random --system majority
        run simulated --condition text-only --system random --limit 3 --seed 1
        run simulated --condition text-only --system random --system random
        run simulated --condition text-only
        run simulated --condition text --system random
        run simulated --condition text-only --system randm
        run simulated --condition text-only --model openai:m --price 1
        run simulated --condition video --system random
        check simulated FOLDER/nothing.json
        show simulated
        show simulated q001 --system longest-option
        audit items simulated --draws 100
        results simulated --draws 100 --by question_type
        list runs --store STORE
    """,
}

ON_A_TERMINAL = """
    results fuzzed --draws 100 --metric accuracy
    rank fuzzed --draws 100 --stability 0 --failed wrong --mine delta
    compare fuzzed --draws 100 --failed wrong --condition video --metric unresolved
    analyze fuzzed --draws 100 --stability 0 --failed wrong
    show fuzzed --by level
    show fuzzed q003 --system alpha
    show fuzzed q004 --condition text-only --prompt
    audit items fuzzed --draws 100 --top 2
    list metrics --store STORE
    audit --scores ONE --ratings RATINGS --draws 100
    store change disqualify fuzzed --system alpha --reason why
    store change readmit fuzzed --system alpha --reason again
"""
"""With bold type and colours, at 80 columns."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Answers of two systems rated by two people, and scores of five metrics, each noisier than the one before."""
    folder, rng = tmp_path_factory.mktemp("rated"), random.Random(0)
    ratings, scores = ["item,system,rater,value,candidate"], ["item,system,m1,m2,m3,m4,m5"]
    for number in range(24):
        name, base = f"q{number // 2},{'ab'[number % 2]}", rng.random()
        ratings += [f"{name},{who},{base + 0.3 * rng.random():.3f},{'so ' * (number % 5 + 1)}" for who in "xy"]
        scores.append(",".join([name, *(f"{base + 0.4 * noise * rng.random():.3f}" for noise in range(1, 6))]))
    files = {"RATINGS": ratings, "SCORES": scores, "ONE": [",".join(line.split(",")[:3]) for line in scores]}
    for name, lines in files.items():
        (folder / f"{name.lower()}.csv").write_text("\n".join(lines) + "\n")
    return {name: folder / f"{name.lower()}.csv" for name in files}


@pytest.fixture
def named(tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """What the words in capitals stand for, and a store where a session begins."""
    made = fuzzed(tmp_path, 41, items=60, waits=0.0)
    made.store.close()
    store = tmp_path / "fuzzed-41.db"
    monkeypatch.setenv("PROCTOR_STORE", str(store))
    monkeypatch.chdir(tmp_path)
    return {"STORE": store, "FOLDER": tmp_path, "QUESTIONS": write_text_folder(tmp_path / "questions", 12), **tables}


def commands(session: str, named: dict[str, Path]) -> Iterator[tuple[str, list[str]]]:
    """Each line as it stands, and its words."""
    for line in filter(None, map(str.strip, session.splitlines())):
        yield (
            line,
            [
                re.sub("STORE|FOLDER|QUESTIONS|RATINGS|SCORES|ONE", lambda found: str(named[found[0]]), word)
                for word in shlex.split(line)
            ],
        )


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session(session: str, named: dict[str, Path]) -> None:
    said = []
    for line, words in commands(SESSIONS[session], named):
        done = proctor(*words)
        said += [f"$ proctor {line}", done.stdout.rstrip(), *(f"! {one}" for one in done.stderr.splitlines())]
        said += [f"exit {done.returncode}" if done.returncode else "", ""]
    kept("\n".join(said), session, named)


def test_a_session_on_a_terminal(named: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.console, "_color_system", ColorSystem.STANDARD)
    said = []
    for line, words in commands(ON_A_TERMINAL, named):
        code, text = within_terminal(*words, columns=80, styles=True)
        said += [f"$ proctor {line}", styles_shown(text), f"exit {code}", ""]
    kept("\n".join(said), "terminal", named)


def styles_shown(text: str) -> str:
    """What a terminal is told, where it changes."""
    return re.sub("\x1b\\[([0-9;]*)m", r"<\1>", re.sub("\x1b\\[0m( ?)\x1b\\[1m", r"\1", text)).rstrip()


def kept(text: str, session: str, named: dict[str, Path]) -> None:
    """What was said is that of before, but for times, paths and sizes."""
    for name, path in sorted(named.items(), key=lambda pair: -len(str(pair[1]))):
        text = text.replace(str(path), name)
    text = re.sub(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?(\+00:00)?)?", "TIME", text)
    # The last digits of a sum depend on the processor's instructions.
    text = re.sub(r"\d\.\d{14,}", lambda found: f"{float(found[0]):.12g}", text)
    text = re.sub(
        r"[\d.]+ MB", "SIZE", re.sub(r"(expected one of ).{60,}?(?=; did|\n|$)", r"\1…", text)
    )  # what grows elsewhere
    snapshot = Path(__file__).parent / "snapshots" / f"{session}.txt"
    assert_frozen(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), snapshot)
