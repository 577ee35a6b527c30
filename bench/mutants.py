"""One-line mutants of the commands, the API and the tables: how many of a random sample the tests notice.

The tree is copied to FOLDER/tree, and all changes are made there. All tests but those of containers run once under
coverage, which tells the tests that reach each line: 15 minutes on two cores, kept in FOLDER/coverage. Mutants are
drawn by the seed: a line at random out of all that the operators below can change in the files below, and one change
of it at random. For each the examples of its file's docstrings run and up to MOST tests that reach its line, those
that reach the fewest lines first and one of each function before a second one, until one fails (killed) or all have
passed (survived); of a line that is run by imports alone, tests of declarations (`DECLARED`) and then some that reach
its file. What no test notices is given to mypy, which `make check` runs as well (killed by types: such a change never
lands, and says nothing of the tests). At the end the tests that failed run on the tree as it is, where they must pass.
Equivalent mutants are for a person to tell.

    python bench/mutants.py --folder /tmp/mutants --seed 1 --count 40
    python bench/mutants.py --folder /tmp/mutants --seed 1 --only 7 --tests packages/proctor/tests/results/test_missing.py    # another look
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORE = "packages/proctor/src/proctor"
SOURCES = (
    "cli/*.py",
    "api/*.py",
    *(
        f"results/{name}.py"
        for name in ("results", "comparison", "ranking", "ranking_tables", "analyses", "performance")
    ),
    *(f"results/{name}.py" for name in ("leaderboard", "run_scores")),
    *(f"reports/{name}.py" for name in ("leaderboard", "comparisons", "ranking", "analysis", "subgroups", "blocks")),
    *(f"reports/metric_{name}.py" for name in ("agreement", "profile", "ranking")),
)
MOST = 150
DECLARED = (
    "packages/proctor/tests/reports/test_limits.py", "tests/docs/test_docs.py", "tests/repository/test_command_tree.py",
    "tests/repository/test_options_arrive.py::test_no_flag_is_up_by_itself",
    "tests/repository/test_options_arrive.py::test_what_intervals_are_drawn_with_is_the_same_everywhere",
    "packages/proctor/tests/shell/test_run_options_go_down.py", "packages/proctor/tests/core/test_same_defaults.py",
)  # fmt: skip
"""What looks at constants, options and their defaults, of which coverage knows nothing."""
LIBRARIES = (
    "numpy scipy.stats scipy.optimize pandas statsmodels.api sqlalchemy "
    "pydantic pydantic_ai rich.console typer jinja2 PIL.Image matplotlib.figure"
)
"""What is loaded once, before a process is forked for each mutant."""
LOADED_BEFORE = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
COUNTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}


@dataclass(frozen=True)
class Mutant:
    """One line of one file, as it is and as it becomes."""

    file: str
    line: int
    operator: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator}: {self.before.strip()}  →  {self.after.strip()}"


def mutants_of(file: Path, tree: Path) -> list[Mutant]:
    """All that the operators can do to single lines of a file of a tree."""
    text = file.read_text(encoding="utf-8")
    lines, module = text.splitlines(), ast.parse(text)
    hidden, found = _hidden(module), dict[tuple[int, str], Mutant]()
    for node in ast.walk(module):
        for operator, row, new in () if id(node) in hidden else _changes(node):
            first, last = row.lineno, row.end_lineno
            if first != last:
                continue
            raw = lines[first - 1].encode()
            after = (raw[: row.col_offset] + new.encode() + raw[row.end_col_offset :]).decode()
            found.setdefault(
                (first, after), Mutant(str(file.relative_to(tree)), first, operator, lines[first - 1], after)
            )
    return list(found.values())


def _hidden(module: ast.Module) -> set[int]:
    """Nodes that are left alone: those for type checkers, which change nothing in a program (`TYPE_CHECKING`, `total=`
    of a class); decorators (whether a class is frozen changes no number); `strict=` of pairings, which guards against
    what does not occur; and what stands within f-strings, whose positions Python 3.11 does not tell."""
    found, bare = list[ast.AST](), set[int]()
    for node in ast.walk(module):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found += [*node.body, node.test]
            bare.add(id(node))
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg in {"strict", "total"}):
            found.append(node)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found += node.decorator_list
    return bare | {id(inner) for one in found for inner in ast.walk(one)}


def _parses(tree: Path, one: Mutant) -> bool:
    lines = (tree / one.file).read_text(encoding="utf-8").split("\n")
    lines[one.line - 1] = one.after
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True


def _changes(node: ast.AST) -> Iterator[tuple[str, Any, str]]:
    """What can be done to a node: the operator, the node whose text is replaced, and the new text."""
    say = ast.unparse
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
            yield "comparison", node, f"{say(left)} {COMPARED[type(op)]} {say(right)}"
        case ast.BoolOp(op=op, values=values):
            other = " or " if isinstance(op, ast.And) else " and "
            yield "and/or", node, f"({other.join(f'({say(one)})' for one in values)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in COUNTED:
            yield "arithmetic", node, f"({say(left)}) {COUNTED[type(op)]} ({say(right)})"
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield "sign", node, f"({say(operand)})"
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", node, repr(value + 1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "branches", node, f"({say(orelse)} if {say(test)} else {say(body)})"
        case ast.If(test=test):
            yield "condition", test, f"not ({say(test)})"
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[tuple[str, Any, str]]:
    """A call with its first two arguments the other way round, if they look alike, and without each of its named
    ones."""
    name, args = ast.unparse(node.func), [*map(ast.unparse, node.args)]
    named = [
        f"{one.arg}={ast.unparse(one.value)}" if one.arg else f"**{ast.unparse(one.value)}" for one in node.keywords
    ]
    alike = len(args) > 1 and type(node.args[0]) is type(node.args[1]) and not isinstance(node.args[0], ast.Starred)
    if alike and args[0] != args[1] and name != "isinstance":
        yield "swapped", node, f"{name}({', '.join([args[1], args[0], *args[2:], *named])})"
    for row in range(len(named)):
        if named[row].startswith("strict="):
            continue
        yield "dropped", node, f"{name}({', '.join([*args, *named[:row], *named[row + 1 :]])})"


def drawn(tree: Path, seed: int, count: int) -> list[Mutant]:
    """The sample: lines at random over all files, and of each line one mutant at random."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for pattern in SOURCES:
        for file in sorted((tree / CORE).glob(pattern)):
            for one in mutants_of(file, tree):
                by_line.setdefault((one.file, one.line), []).append(one)
    rng, found = random.Random(seed), list[Mutant]()
    for line in rng.sample(sorted(by_line), 2 * count):
        one = rng.choice(by_line[line])
        found += [one] if _parses(tree, one) else []
    return found[:count]


class Reached:
    """Which tests reach which line of a tree. What a fixture reaches may be looked at by all tests of its file."""

    def __init__(self, tree: Path, data: Path) -> None:
        from coverage import CoverageData

        found = CoverageData(str(data))
        found.read()
        of_file: dict[str, set[str]] = {}
        for context in filter(None, found.measured_contexts()):
            of_file.setdefault(context.partition("::")[0], set()).add(_test_of(context))
        self._lines: dict[str, dict[int, set[str]]] = {}
        self._wide = Counter[str]()
        for file in found.measured_files():
            lines: dict[int, set[str]] = {}
            for line, contexts in found.contexts_by_lineno(file).items():
                tests = lines.setdefault(line, set())
                for context in filter(None, contexts):
                    fixture = context.endswith("|setup")
                    tests |= of_file[context.partition("::")[0]] if fixture else {_test_of(context)}
                self._wide.update(tests)
            self._lines[str(Path(file).relative_to(tree))] = lines

    def tests(self, one: Mutant, tree: Path) -> list[str]:
        """Those that reach a mutant's line, or its statement's first; else those that reach its file."""
        lines = self._lines.get(one.file, {})
        module = ast.parse((tree / one.file).read_text(encoding="utf-8"))
        around = [
            node.lineno
            for node in ast.walk(module)
            if isinstance(node, ast.stmt) and node.lineno <= one.line <= (node.end_lineno or 0)
        ]
        for line in (one.line, *sorted(around, reverse=True)[:1]):
            if lines.get(line):
                return self._in_turn(lines[line])
        return [*DECLARED, *self._in_turn(set().union(*lines.values()))]

    def _in_turn(self, tests: set[str]) -> list[str]:
        """The narrowest first, one of each function before a second one."""
        turns, order = Counter[str](), list[tuple[int, int, str]]()
        for test in sorted(tests, key=lambda one: (self._wide[one], one)):
            function = test.partition("[")[0]
            order.append((turns[function], len(order), test))
            turns[function] += 1
        return [test for _, _, test in sorted(order)][:MOST]


def _test_of(context: str) -> str:
    """A test's name, without its phase and the group that pytest-xdist put it in."""
    return re.sub(r"(@[^\[\]]*)?\|\w+$", "", context)


def _paths(tree: Path) -> list[str]:
    """Where the copy's packages and its tests are imported from."""
    return [*map(str, sorted(tree.glob("packages/*/src"))), str(tree)]


def measured(tree: Path, folder: Path, processes: int) -> Path:
    """The coverage of all tests but those of containers, measured once."""
    data = folder / "coverage"
    if data.exists():
        return data
    settings = folder / "coverage.ini"
    included = "".join(f"\n    {tree / CORE / pattern}" for pattern in SOURCES)
    settings.write_text(f"[run]\ndata_file = {data}.new\ninclude ={included}\n")
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(processes), "--dist", "loadgroup"]
    coverage = ["--cov", "--cov-config", str(settings), "--cov-context", "test", "--cov-report", ""]
    paths = os.pathsep.join(_paths(tree))
    with (folder / "coverage.log").open("w") as log:
        words = [sys.executable, *tests, *coverage, "-m", "not podman"]
        done = subprocess.run(
            words, cwd=tree, stdout=log, stderr=log, check=False, env=os.environ | {"PYTHONPATH": paths}
        )
    if done.returncode:
        raise SystemExit(f"tests fail on the tree as it is: see {log.name}")
    Path(f"{data}.new").rename(data)
    return data


@contextlib.contextmanager
def mutated(tree: Path, one: Mutant) -> Iterator[None]:
    """The tree with one mutant in it. Compiled files are told apart by their times, so each mutant has another one."""
    file = tree / one.file
    whole, before = file.read_bytes(), file.stat().st_mtime
    lines = whole.decode().split("\n")
    lines[one.line - 1] = one.after
    try:
        file.write_bytes("\n".join(lines).encode())
        other = before + 60 + zlib.crc32(str(one).encode()) % 10**6
        os.utime(file, (other, other))
        yield
    finally:
        file.write_bytes(whole)
        os.utime(file, (before, before))


def run(tree: Path, tests: Sequence[str], log: Path, limit_s: float) -> int:
    """Pytest's exit code for these tests on the tree, in a process that has the libraries; −1 where the time is up."""
    child = os.fork()
    if not child:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(tree)
        sys.path[:1] = _paths(tree)
        import pytest

        code = 1
        try:
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--doctest-modules", *LOADED_BEFORE, *tests]))
        except BaseException:  # noqa: BLE001  (the edge of a process)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end, code = time.monotonic() + limit_s, -1
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):  # what tests started and would end at the interpreter's end
        os.killpg(child, signal.SIGKILL)
    if code < 0:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    return code


def tried(one: Mutant, folder: Path, tests: Sequence[str], limit_s: float) -> dict[str, Any]:
    """Whether these tests notice the mutant, and which first."""
    began, log = time.monotonic(), folder / "pytest.log"
    with mutated(folder / "tree", one):
        code = run(folder / "tree", tests, log, limit_s)
        if code == 4:  # a test of that name is no longer collected: those of its file may tell why
            files = dict.fromkeys(one.partition("::")[0] for one in tests)
            code = run(folder / "tree", list(files), log, limit_s)
    state = {0: "survived", 5: "survived (no test)", -1: "survived (time is up)"}.get(code, "killed")
    wrong = ""
    if state != "killed":
        with mutated(folder / "tree", one):
            wrong = mistyped(folder)
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED ", "ERROR "))]
    by, _, why = failed[0].split(" ", 1)[1].partition(" - ") if failed else ("", "", "")
    if state == "killed" and not failed:
        raise SystemExit(f"pytest did not run: see {log}")
    if wrong:
        state, why = "killed by types", wrong.partition("error: ")[2]
    return {"mutant": str(one), "state": state, "by": by, "why": why[:80], "seconds": round(time.monotonic() - began)}


def mistyped(folder: Path) -> str:
    """The first error that mypy finds in the tree as it now is; empty where it finds none."""
    words = [sys.executable, "-m", "mypy", "--cache-dir", str(folder.resolve() / "mypy"), CORE]
    done = subprocess.run(words, cwd=folder / "tree", capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"mypy did not run: {done.stdout}{done.stderr}")
    return done.stdout.partition("\n")[0] if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the copy and what is found are kept")
    parser.add_argument("--seed", type=int, default=0, help="that of the sample")
    parser.add_argument("--count", type=int, default=40, help="mutants of the sample")
    parser.add_argument("--only", type=int, nargs="*", help="these of the sample alone, by number")
    parser.add_argument(
        "--tests", nargs="*", help="these tests, copied from the tree once more, not those that reach it"
    )
    parser.add_argument("--processes", type=int, default=3, help="for the coverage")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one mutant")
    parser.add_argument("--list", action="store_true", help="only print the sample")
    given = parser.parse_args()
    tree = given.folder / "tree"
    if not tree.exists():
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "*.egg-info")
        )
        compileall.compile_dir(tree / "packages", quiet=1)
    for folder in (
        ("tests", *(f"packages/{one.name}/tests" for one in (ROOT / "packages").iterdir())) if given.tests else ()
    ):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    sample = list(enumerate(drawn(tree, given.seed, given.count), start=1))
    if given.list:
        print(*(f"{number:2d} {one}" for number, one in sample), sep="\n")
        return
    reached = None if given.tests else Reached(tree, measured(tree, given.folder, given.processes))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the tree is left as it was
    for name in LIBRARIES.split():
        importlib.import_module(name)
    kept = given.folder / f"sample-{given.seed}.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    if wrong := mistyped(given.folder):
        raise SystemExit(f"mypy finds a fault in the tree as it is: {wrong}")
    for number, one in sample:
        if (given.only is None and str(number) in found) or (given.only and number not in given.only):
            continue
        tests = [one.file, *(reached.tests(one, tree) if reached else given.tests)]
        found[str(number)] = tried(one, given.folder, tests, given.limit)
        print(f"{number:2d} {found[str(number)]['state']}  {one}  {found[str(number)]['by']}", flush=True)
        kept.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    killers = sorted({one["by"] for one in found.values() if one["by"]})
    if killers and not given.tests and run(tree, killers, given.folder / "clean.log", 10 * given.limit):
        print(f"tests that fail without a mutant, too: see {given.folder / 'clean.log'}")
    ended = Counter(one["state"] for one in found.values())
    print(f"{ended['killed']} of {len(found)} killed by tests, {ended['killed by types']} by types")


if __name__ == "__main__":
    main()
