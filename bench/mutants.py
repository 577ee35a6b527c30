"""One-line mutants of the commands, the API and the tables: how many of a random sample the tests notice.

The tree is copied to FOLDER/tree, and all changes are made there. Mutants are drawn by the seed: a line at random out
of all that the operators below can change in the files below, and one change of it at random. For each the test files
that are near its file run (`NEAR`), until one fails (killed) or all have passed (survived); at the end the tests that
failed run on the tree as it is, where they must pass. Equivalent mutants are for a person to tell.

    python bench/mutants.py --folder /tmp/mutants --seed 1 --count 40
    python bench/mutants.py --folder /tmp/mutants --seed 1 --only 7 --tests tests/runs/test_missing.py    # another look
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
import shutil
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "cli/*.py",
    "api/*.py",
    *(f"runs/{name}.py" for name in ("results", "comparison", "ranking", "boards", "analyses", "performance")),
    *(f"runs/{name}.py" for name in ("leaderboard", "run_scores", "report_data")),
    *(f"reports/{name}.py" for name in ("leaderboard", "comparisons", "ranking", "analysis", "subgroups", "blocks")),
    *(f"reports/metric_{name}.py" for name in ("agreement", "profile", "ranking")),
)
_SHOWN = "reports/limits reports/sections_are_kept reports/blocks"
_DOWN = "api/options_go_down"
NEAR = {
    "cli/audit": "=audit cli/audit_cli cli/tables_tell cli/options_arrive reports/audit_report cli/no_store",
    "cli/demo": "cli/demo cli/machine_faults cli/options_arrive",
    "cli/former": "cli/command_tree cli/audit_cli",
    "cli/inventory": "=show cli/command_tree cli/store_cli cli/terminal_width",
    "cli/items": "=show docs/docs cli/results_cli cli/rexsonovqa_cli runs/reproduction cli/options_arrive",
    "cli/judge": "cli/judge_tuning_cli cli/train_cli judges/retrieval cli/options_arrive",
    "cli/main": "=score cli/command_tree cli/machine_faults docs/docs",
    "cli/media": "media/stills_cli media/cache_cli media/media_cli media/leaks cli/options_arrive",
    "cli/output": "=show =rank cli/terminal_width cli/store_cli",
    "cli/plugins": "=score cli/lint_cli cli/command_tree cli/clinicalskillqa_cli",
    "cli/progress": "reports/limits cli/run_cli cli/machine_faults cli/score_cli",
    "cli/proofs": "api/proof_tables =score benchmarks/verification runs/reproduction cli/options_arrive",
    "cli/report": "=report =store cli/publish_cli cli/options_arrive",
    "cli/results": "=results =compare =rank =analyze cli/results_cli cli/rank_cli cli/options_arrive",
    "cli/run": "api/where_workers_are reports/limits cli/run_cli cli/machine_faults cli/folders_cli cli/options_arrive",
    "cli/score": (
        "=score cli/score_cli cli/judge_cli cli/judge_submission_cli cli/panel_cli cli/score_predictions_cli "
        "cli/options_arrive"
    ),
    "cli/store": "=store cli/store_cli cli/disqualify_cli runs/damaged_store cli/options_arrive",
    "cli/challenge": (
        "challenges/hand_in challenges/board_page challenges/worker_command challenges/try_image "
        "challenges/codabench_pack web/challenge_serve"
    ),
    "cli/choose": "cli/choose_cli cli/options_arrive",
    "cli/fetch": "interchange/fetch cli/options_arrive",
    "cli/pool": "runs/federation cli/options_arrive",
    "cli/review": "web/review_commands web/people_pages",
    "cli/serve": "web/serve web/challenge_serve cli/options_arrive",
    "cli/train": (
        "training/train_answerer cli/train_classifier_cli training/classifier training/generative cli/options_arrive"
    ),
    "cli/users": "web/people_pages web/review_commands web/serve",
    "cli/worker": "api/where_workers_are runs/orders docs/laptop_to_cluster cli/options_arrive",
    "cli": "=results =show =store cli/command_tree cli/run_cli",
    "api/access": (
        "api/run_options_go_down api/refusals api/function_systems api/function_judges cli/run_cli cli/judge_cli "
        "cli/judge_submission_cli"
    ),
    "api/agreement": "api/judge_agreement cli/options_arrive",
    "api/answerer": "training/train_answerer training/answerer_rehearsal docs/docs cli/options_arrive",
    "api/check_parity": "training/parity training/parity_paths docs/docs cli/options_arrive",
    "api/checking": "api/check cli/folders_cli",
    "api/execution": (
        "api/run_options_go_down api/refusals api/door api/function_systems cli/run_cli cli/folders_cli runs/imports"
    ),
    "api/choosing": "cli/choose_cli cli/options_arrive",
    "api/exchange": f"{_DOWN} api/refusals interchange/answers_in interchange/results_out",
    "api/fetching": "interchange/fetch cli/options_arrive",
    "api/fitting": "api/refusals cli/judge_tuning_cli cli/train_cli",
    "api/grid": "judges/judge_grid docs/docs cli/options_arrive",
    "api/lora_options": "training/lora_options training/lora docs/docs",
    "api/numbers": f"{_DOWN} api/refusals =report =score api/tables api/door cli/publish_cli",
    "api/options": f"{_DOWN} api/run_options_go_down docs/docs cli/command_tree cli/run_cli",
    "api/perturbing": "audit/perturbations docs/docs cli/options_arrive",
    "api/ray": "api/where_workers_are docs/laptop_to_cluster",
    "api/reproduction": f"{_DOWN} api/proof_tables reports/limits runs/reproduction",
    "api/scores": (
        "api/run_options_go_down api/refusals =score api/function_metrics "
        "api/function_judges cli/score_cli cli/judge_cli cli/judge_submission_cli cli/panel_cli "
        "cli/score_predictions_cli"
    ),
    "api/slurm": "api/where_workers_are docs/laptop_to_cluster",
    "api/sources": "api/refusals =score api/door cli/folders_cli cli/store_cli",
    "api/tables": "api/tables api/plots_tell runs/compare_recomputed runs/analysis_recomputed =analyze",
    "api/train_classifier": "training/classifier cli/train_classifier_cli docs/docs cli/options_arrive",
    "api/train_generative": "training/generative training/train_rewards docs/docs cli/options_arrive",
    "api/verification": "api/proof_tables =score benchmarks/verification",
    "api": f"{_DOWN} api/plots_tell api/refusals api/tables api/door",
    "runs/analyses": "runs/analysis_recomputed runs/analysis runs/every_format",
    "runs/boards": "runs/boards_recomputed runs/analysis_recomputed runs/ranking cli/rank_cli",
    "runs/comparison": "runs/few_questions runs/compare_recomputed =compare runs/missing runs/results",
    "runs/leaderboard": "runs/leaderboard_recomputed runs/leaderboard runs/missing",
    "runs/performance": "runs/analysis_recomputed runs/analysis runs/every_format",
    "runs/ranking": "runs/boards_recomputed runs/ranking runs/missing cli/rank_cli",
    "runs/report_data": "reports/report_data reports/report_orders reports/sections_are_kept",
    "runs/results": "runs/results_recomputed =results runs/results runs/panel_results cli/results_cli",
    "runs/run_scores": (
        "runs/results_recomputed runs/boards_recomputed runs/missing runs/baselines runs/ranking runs/panel_results"
    ),
    "reports/analysis": f"{_SHOWN} reports/report_analysis",
    "reports/leaderboard": f"{_SHOWN} =results reports/report_page",
    "reports/ranking": f"{_SHOWN} =rank reports/report_ranking runs/ranking",
    "reports/subgroups": f"{_SHOWN} reports/report_orders reports/report_page",
    "reports/metric": f"{_SHOWN} =audit reports/audit_report",
    "reports": f"{_SHOWN} =compare reports/report_page",
}
"""Test files (`tests/ROOM/test_NAME.py`; "=NAME" is one session of `test_sessions_are_kept.py`) by the beginning of a
source file's name; the longest beginning counts."""
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
        for operator, place, new in () if id(node) in hidden else _changes(node):
            first, last = place.lineno, place.end_lineno
            if first != last:
                continue
            raw = lines[first - 1].encode()
            after = (raw[: place.col_offset] + new.encode() + raw[place.end_col_offset :]).decode()
            found.setdefault(
                (first, after), Mutant(str(file.relative_to(tree)), first, operator, lines[first - 1], after)
            )
    return list(found.values())


def _hidden(module: ast.Module) -> set[int]:
    """Nodes that are left alone: those for type checkers, which change nothing in a program (`TYPE_CHECKING`, `total=`
    of a class); decorators (whether a class is frozen changes no number); `strict=` of pairings, which guards against
    what does not occur; and what stands within f-strings, whose places Python 3.11 does not tell."""
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
    for place in range(len(named)):
        if named[place].startswith("strict="):
            continue
        yield "dropped", node, f"{name}({', '.join([*args, *named[:place], *named[place + 1 :]])})"


def drawn(tree: Path, seed: int, count: int) -> list[Mutant]:
    """The sample: lines at random over all files, and of each line one mutant at random."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for pattern in SOURCES:
        for file in sorted((tree / "src/proctor").glob(pattern)):
            for one in mutants_of(file, tree):
                by_line.setdefault((one.file, one.line), []).append(one)
    rng, found = random.Random(seed), list[Mutant]()
    for line in rng.sample(sorted(by_line), 2 * count):
        one = rng.choice(by_line[line])
        found += [one] if _parses(tree, one) else []
    return found[:count]


def near(one: Mutant) -> list[str]:
    """The test files that are near a mutant's file."""
    place = one.file.removeprefix("src/proctor/")
    names = NEAR[max((name for name in NEAR if place.startswith(name)), key=len)].split()
    session = "tests/cli/test_sessions_are_kept.py::test_a_session[{}]"
    return [
        session.format(name[1:]) if name.startswith("=") else "tests/{}/test_{}.py".format(*name.split("/"))
        for name in names
    ]


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
        sys.path[:1] = [str(tree / "src"), str(tree)]
        import pytest

        code = 1
        try:
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *LOADED_BEFORE, *tests]))
        except BaseException:  # noqa: BLE001  (the edge of a process)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def tried(one: Mutant, folder: Path, tests: Sequence[str], limit_s: float) -> dict[str, Any]:
    """Whether these tests notice the mutant, and which first."""
    began, log = time.monotonic(), folder / "pytest.log"
    with mutated(folder / "tree", one):
        code = run(folder / "tree", tests, log, limit_s)
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED ", "ERROR "))]
    by, _, why = failed[0].split(" ", 1)[1].partition(" - ") if failed else ("", "", "")
    if code > 0 and not failed:
        raise SystemExit(f"pytest did not run: see {log}")
    state = {0: "survived", -1: "survived (time is up)"}.get(code, "killed")
    return {"mutant": str(one), "state": state, "by": by, "why": why[:80], "seconds": round(time.monotonic() - began)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the copy and what is found are kept")
    parser.add_argument("--seed", type=int, default=0, help="that of the sample")
    parser.add_argument("--count", type=int, default=40, help="mutants of the sample")
    parser.add_argument("--only", type=int, nargs="*", help="these of the sample alone, by number")
    parser.add_argument("--tests", nargs="*", help="these tests, copied from the tree once more, and not those near by")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one mutant")
    parser.add_argument("--list", action="store_true", help="only print the sample")
    given = parser.parse_args()
    tree = given.folder / "tree"
    if not tree.exists():
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__"))
        compileall.compile_dir(tree / "src", quiet=1)
    if given.tests:
        shutil.copytree(
            ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
    sample = list(enumerate(drawn(tree, given.seed, given.count), start=1))
    if given.list:
        print(*(f"{number:2d} {one}" for number, one in sample), sep="\n")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the tree is left as it was
    for name in LIBRARIES.split():
        importlib.import_module(name)
    kept = given.folder / f"sample-{given.seed}.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for number, one in sample:
        if (given.only is None and str(number) in found) or (given.only and number not in given.only):
            continue
        found[str(number)] = tried(one, given.folder, given.tests or near(one), given.limit)
        print(f"{number:2d} {found[str(number)]['state']}  {one}  {found[str(number)]['by']}", flush=True)
        kept.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    killers = sorted({one["by"] for one in found.values() if one["by"]})
    if killers and not given.tests and run(tree, killers, given.folder / "clean.log", 10 * given.limit):
        print(f"tests that fail without a mutant, too: see {given.folder / 'clean.log'}")
    print(f"{sum(one['state'] == 'killed' for one in found.values())} of {len(found)} killed")


if __name__ == "__main__":
    main()
