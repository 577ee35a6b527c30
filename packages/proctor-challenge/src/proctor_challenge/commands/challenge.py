"""`proctor challenge`: host a challenge, from the organiser's side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

from proctor.cli import (
    Output,
    OutputFormat,
    at_work,
    print_blocks,
    print_line,
    print_note,
    show,
    show_plugin_report,
    show_steps,
)
from proctor.core import COMMANDS, InputError, Option, PluginReport, UsageError, count_of, extension, one_of, shell_word
from proctor.shell import BenchmarkName, Seed, Track, names_in

ChallengeFolder = Annotated[Path, Option("The folder with challenge.yaml.", metavar="DIR", argument=True)]

PhaseName = Annotated[str, Option("A phase of it.", metavar="PHASE", argument=True)]

ChallengeStore = Annotated[
    str | None, Option("The database of submissions. [default: PROCTOR_STORE, or as challenge.yaml says]", "--store")
]


ExecutorName = Annotated[
    str,
    Option(
        "podman, docker, or process.",
        "--executor",
        metavar="NAME",
        names=names_in("proctor_challenge.containers:EXECUTORS"),
    ),
]


def new(
    folder: Annotated[Path, Option("A new folder.", metavar="DIR", argument=True)],
    benchmark: BenchmarkName,
    data: Annotated[Path, Option("The benchmark's own files, with references.")],
    media: Annotated[Path | None, Option("The folder with its videos or images.")] = None,
    track: Track = "",
    title: Annotated[str, Option("What the challenge is called.")] = "",
    training: Annotated[int, Option("Groups (videos) for training.", low=0)] = 0,
    pre_evaluation: Annotated[int, Option("Groups for the pre-evaluation.", low=0)] = 0,
    test: Annotated[int, Option("Groups for the test. [default: half of all]", low=0)] = 0,
    files_only: Annotated[bool, Option("No phase takes images: no machine needs containers.", "--files-only")] = False,
    seed: Seed = 0,
) -> None:
    """Make a challenge of a benchmark's data.

    Groups are assigned to three phases: training, public with its references; pre-evaluation, public without them; and
    test, of which nothing is public (with --files-only its questions are). References are in DIR/sealed, which only the
    scorer's user may open.

    Example: proctor challenge new sponges focus --data focus --media videos --pre-evaluation 3 --test 9
    """
    from proctor_challenge import NewChallenge, new_challenge

    plan = NewChallenge(benchmark, data, media, track, title, training, pre_evaluation, test, seed, files_only)
    for name, count in new_challenge(folder, plan).items():
        print_line(f"{name}: {count_of(count, 'question')}")
    print_note(f"Next: edit {folder}/challenge.yaml; proctor challenge check {shell_word(folder)}")


def check(
    folder: Annotated[
        Path | None, Option("The folder with challenge.yaml; optional with --machine.", metavar="[DIR]", argument=True)
    ] = None,
    machine: Annotated[bool, Option("Instead, check that this machine can run images.")] = False,
    gpu: Annotated[str, Option("With --machine: a GPU by its CDI name.", metavar="DEVICE")] = "",
    executor: ExecutorName = "podman",
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a challenge's folder, or this machine.

    Checks settings, media and baselines, that the public questions are those that are scored, and that nothing public
    reveals references. The exit code is 1 if something is wrong.

    With --machine, starts containers and tests from inside that rights, network, files and all limits (those of DIR, if
    it is given) hold, and measures the latency of questions and deadlines. The exit code is 1 if a test fails.

    Example: proctor challenge check sponges
    """
    if machine:
        _check_machine(folder, gpu, executor, output)
        return
    if folder is None:
        raise UsageError("DIR is missing. Give the folder with challenge.yaml, or --machine.")
    from proctor_challenge import check_challenge

    found = check_challenge(folder)
    ended = count_of(len(found.problems), "problem") if found.problems else "Nothing is wrong."
    report = PluginReport(found.record(), (*found.facts, *found.problems, ended), ok=not found.problems)
    show_plugin_report(report, output)


def _check_machine(folder: Path | None, gpu: str, executor: str, output: OutputFormat) -> None:
    from proctor_challenge import examine_machine
    from proctor_challenge.containers import executor_of

    if executor == "process":
        raise UsageError("A process has no limits to check. Give --executor podman or docker.")
    with at_work("trying"):
        report = asyncio.run(examine_machine(executor_of(executor), folder, gpu or None))
    show_plugin_report(report, output)


def _phase_actions() -> list[str]:
    return [*_PHASE_ACTIONS]


def phase(
    action: Annotated[str, Option("open, close, or questions.", metavar="ACTION", argument=True, names=_phase_actions)],
    folder: ChallengeFolder,
    name: PhaseName,
    executor: ExecutorName = "podman",
    no_oracle: Annotated[bool, Option("open: skip the cheating test; this is recorded.", "--no-oracle")] = False,
    store: ChallengeStore = None,
) -> None:
    """Open or close a phase; write its questions.

    open checks the folder. If the phase takes container images, a program that tries to cheat runs in a container and
    must score at chance. Then the phase takes submissions between its dates. close takes no more submissions; queued
    ones are still run and scored.

    questions is for a phase that was added to challenge.yaml by hand: its sealed questions are written without references
    into its public folder (questions: …, by default public/PHASE), and compared with those that are scored.

    Example: proctor challenge phase open sponges pre-evaluation
    """
    if action not in _PHASE_ACTIONS:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*_PHASE_ACTIONS], action)}")
    _PHASE_ACTIONS[action](folder, name, store, None if no_oracle else executor)


def _open_phase(folder: Path, phase: str, store: str | None, executor: str | None) -> None:
    from proctor_challenge import Challenge
    from proctor_challenge import open_phase as opened
    from proctor_challenge.containers import executor_of

    with closing(Challenge.open(folder, "organiser", store=store)) as challenge:
        checked = opened(challenge, phase, None if executor is None else executor_of(executor))
    for line in checked:
        print_note(line)
    print_line(f"{phase} is open")


def _close_phase(folder: Path, phase: str, store: str | None, _: str | None) -> None:
    from proctor_challenge import Challenge
    from proctor_challenge import close_phase as closed

    with closing(Challenge.open(folder, "organiser", store=store, create=False)) as challenge:
        closed(challenge, phase)
    print_line(f"{phase} is closed")


def _write_questions(folder: Path, phase: str, _store: str | None, _: str | None) -> None:
    from proctor_challenge import write_public_questions

    location, count = write_public_questions(folder, phase)
    print_line(f"{location}: {count_of(count, 'question')} without references")
    print_note(f"In challenge.yaml, {phase} needs: questions: {location}")


_PHASE_ACTIONS: dict[str, Callable[[Path, str, str | None, str | None], None]] = {
    "open": _open_phase,
    "close": _close_phase,
    "questions": _write_questions,
}


_FEWEST_VIDEOS = 6

Audience = Annotated[Literal["public", "participant", "organiser"], Option("The audience.")]


def demonstrate_challenge(out: Path, videos: int, seed: int) -> None:
    """Run a whole simulated challenge in a new folder: `proctor demo --challenge`."""
    if videos < _FEWEST_VIDEOS:
        raise UsageError(f"--videos {videos} is too few for a challenge: give at least {_FEWEST_VIDEOS}.")
    from proctor_challenge import NewChallenge, demonstrate

    started, made = time.monotonic(), out / "procedures"
    extension("new.simulated", "proctor", "proctor demo --challenge")(
        made, show_steps, videos=videos, seconds=10.0, questions=1, seed=seed
    )
    named: dict[str, Any] = {"procedure": "simulated procedure", "questions": 20, "allow_findings": True, "seed": seed}
    COMMANDS.get("build.focus")([made / "tracks"], show_steps, out=out / "questions", **named)
    last = max(1, videos // 6)
    groups = {"training": last, "pre_evaluation": videos - 2 * last, "test": last}
    data = {"data": out / "questions", "media": made / "videos", "title": "Simulated procedures (not real)"}
    plan = NewChallenge("focus", track="procedure", seed=seed, **data, **groups)  # type: ignore[arg-type]
    shown = demonstrate(out / "challenge", plan, print_line)
    there = shell_word(shown.folder)
    show_boards(shown.folder, shown.phase, out / "boards.html", "organiser", shown.store, OutputFormat.TABLE)
    print_line(f"{shown.receipt} and {out / 'boards.html'} written; {time.monotonic() - started:.0f} s in all.")
    print_note(
        f"Next: proctor challenge status {there}; proctor check receipt {shell_word(shown.receipt)} --option key={there}",
        f"In the browser: proctor serve users add {there} me --role organiser; proctor serve {there} --same-user",
    )


def status(
    folder: ChallengeFolder,
    phase: Annotated[str, Option("The boards of this phase.", metavar="[PHASE]", argument=True)] = "",
    out: Annotated[Path | None, Option("With PHASE: also write its boards as one self-contained page.")] = None,
    audience: Audience = "public",
    prizes: Annotated[bool, Option("With PHASE: who gets which prize, instead.")] = False,
    store: ChallengeStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show each phase's state, or its boards.

    Shows the schedule, each phase's state, its submissions by state, how many teams passed its gate, and its information
    leakage: how far the best result may exceed its true accuracy by chance or by an attack, with the Monte Carlo error.

    With PHASE, shows the boards as an audience sees them, by default the public; --out writes a page that can be hosted
    anywhere. With --prizes, by the newest boards and the present decisions on teams and submissions: ranks, shares of
    the money, who is announced, who may name co-authors, and why others get no prize; the rule is printed below.

    Example: proctor challenge status sponges pre-evaluation --out boards.html
    """
    if not phase and (prizes or out is not None or audience != "public"):
        raise UsageError("PHASE is missing. Example: proctor challenge status sponges test --prizes")
    if not phase:
        _show_phases(folder, store, output)
    elif prizes:
        _show_prizes(folder, phase, store, output)
    else:
        show_boards(folder, phase, out, audience, store, output)


def _show_phases(folder: Path, store: str | None, output: OutputFormat) -> None:
    from proctor_challenge import Challenge, phase_rows, status_tables

    with (
        closing(Challenge.open(folder, "organiser", store=store, create=False)) as challenge,
        challenge.reading() as connection,
    ):
        rows, rules = phase_rows(connection, challenge), challenge.settings.teams
    tables = status_tables(rows)
    dates = [f"{word} {at.isoformat()}" for word, at in (("from", rules.opens), ("until", rules.closes)) if at]
    if dates:
        print_note(f"Teams register {' '.join(dates)}.")
    show(output, rows if output is OutputFormat.JSON else tables[0].records, *tables)


def show_boards(
    folder: Path, phase: str, out: Path | None, audience: Any, store: str | None, output: OutputFormat
) -> None:
    """Print the boards of a phase, and write them as a page if there is a file for it."""
    from proctor_challenge import Challenge, board_lines, board_tables, seen_boards, write_boards

    with closing(Challenge.open(folder, "organiser", store=store, create=False)) as challenge:
        content = seen_boards(challenge, phase, audience)
        if out is not None:
            write_boards(challenge, phase, out, audience)
    tables = board_tables(content)
    if output is OutputFormat.TABLE:
        print_blocks(*tables, apart=True)
        print_note(*dict.fromkeys(line for board in content["boards"] for line in board_lines(board)))
    else:
        named = zip(content["boards"], tables, strict=True)
        rows = [row | {"Board": board["title"]} for board, table in named for row in table.records]
        show(output, [content] if output is OutputFormat.JSON else rows)


def _show_prizes(folder: Path, phase: str, store: str | None, output: OutputFormat) -> None:
    from proctor_challenge import Challenge, prize_tables, prizes_of

    with closing(Challenge.open(folder, "organiser", store=store, create=False)) as challenge:
        content = prizes_of(challenge, phase)
    tables = prize_tables(content)
    if output is OutputFormat.TABLE:
        show(output, [], *tables, *content["rule"])
    else:
        pairs = zip(content["boards"], tables, strict=True)
        rows = [row | {"Board": board["name"]} for board, table in pairs for row in table.records]
        show(output, [content] if output is OutputFormat.JSON else rows)
    if content["outdated"]:
        print_note("Ranks are from before the last decision on a team or submission: a worker recomputes them.")


def pack(
    platform: Annotated[
        str,
        Option(
            "codabench or grand-challenge.",
            metavar="PLATFORM",
            argument=True,
            names=names_in("proctor_challenge:PLATFORMS"),
        ),
    ],
    folder: Annotated[Path, Option("The folder with challenge.yaml.", metavar="DIR", argument=True)],
    out: Annotated[Path | None, Option("Where the pack goes. [default: DIR/sealed/packs/PLATFORM]")] = None,
    image: Annotated[str, Option("The name of the scorer's image on the platform.")] = "",
    check: Annotated[bool, Option("Run it as the platform does, and compare.", "--check")] = False,
) -> None:
    """Pack a challenge for another platform.

    The pack contains the references, and scores with Proctor itself, without network. --check runs it on a baseline's
    answers and compares the results with Proctor's own; an existing pack is checked as it is. It runs in the scorer's
    image if podman or docker has it, else in a process.

    Example: proctor challenge pack codabench my-challenge --check
    """
    from proctor_challenge import PLATFORMS, check_pack, pack_folder, write_pack

    if platform not in PLATFORMS:
        raise UsageError(f"PLATFORM {platform!r} is unknown: choose {one_of(PLATFORMS, platform)}")
    location = pack_folder(folder, platform) if out is None else out
    if check and (location / "README.md").is_file():
        print_note(f"{location} is there already and is checked as it is.")
    else:
        with at_work("packing"):
            written = write_pack(platform, folder, location, image)
        print_line(
            f"{count_of(len(written.phases), 'phase')} packed for {platform} in {location}: read {location / 'README.md'}"
        )
        print_note(*written.notes)
    if not check:
        return
    for pack_check in check_pack(platform, folder, location):
        if not pack_check.ok:
            found = "; ".join(pack_check.wrong[:3]) or "no figures"
            raise InputError(location, f"phase {pack_check.phase}", found=found, expected="Proctor's own figures")
        told = (
            f"{count_of(pack_check.figures, 'figure')} as Proctor's own (largest difference {pack_check.largest:.1e})"
        )
        print_line(f"{pack_check.phase}: {pack_check.baseline} in {pack_check.ran}: {told}")


def try_image(
    image: Annotated[str, Option("An image, or an archive of one.", metavar="IMAGE", argument=True)],
    folder: Annotated[Path, Option("A challenge's public folder.", metavar="DIR", argument=True)],
    phase: Annotated[str, Option("Whose questions. [default: the first public ones]")] = "",
    benchmark: Annotated[str, Option("Which, where DIR holds its own files.")] = "",
    track: Annotated[str, Option("A track of the benchmark.")] = "",
    media: Annotated[Path | None, Option("The folder with videos or images.")] = None,
    limit: Annotated[int | None, Option("Ask the first questions only.", low=1)] = None,
    gpu: Annotated[str, Option("A GPU by its CDI name.", metavar="DEVICE")] = "",
    executor: ExecutorName = "podman",
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Try an image as the challenge runs it.

    Runs it on public questions with the same gateway, deadlines and limits, without a network, and shows its output.
    With --executor process, IMAGE is a program that runs without isolation.

    Example: proctor challenge try my-algorithm my-challenge --limit 20
    """
    from proctor_challenge import Trial
    from proctor_challenge import try_image as tried
    from proctor_challenge.containers import executor_of

    trial = Trial(folder, phase, benchmark, track, media, limit, seed, gpu or None)
    with at_work("asking"):
        report = asyncio.run(tried(trial, executor_of(executor), image))
    show_plugin_report(report, output)
