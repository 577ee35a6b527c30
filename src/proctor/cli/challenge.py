"""`proctor challenge`: a challenge's folder from the organiser's side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.api import BenchmarkName, Seed, Track
from proctor.cli.output import Output, OutputFormat, note, say, show
from proctor.cli.plugins import show_plugin_report
from proctor.cli.serve import check_extra
from proctor.core import Option, PluginReport, count_of

ChallengeFolder = Annotated[Path, Option("The folder with challenge.yaml.", metavar="DIR", argument=True)]
PhaseName = Annotated[str, Option("A phase of it.", metavar="PHASE", argument=True)]
ChallengeStore = Annotated[
    str | None,
    Option("The database of submissions. [default: as challenge.yaml says]", "--store", env="PROCTOR_CHALLENGE_STORE"),
]


def _executors() -> list[str]:
    from proctor.containers import EXECUTORS

    return list(EXECUTORS)


ExecutorName = Annotated[str, Option("podman, docker, or process.", "--executor", metavar="NAME", names=_executors)]


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
    seed: Seed = 0,
) -> None:
    """Make a challenge of a benchmark's data.

    Groups are dealt to three phases: training, public with its references; pre-evaluation, handed out without; test,
    of which nothing is handed out. References lie in DIR/sealed, which only the scorer's user may open.

    Example: proctor challenge new sponges focus --data focus --media videos --pre-evaluation 3 --test 9
    """
    check_extra("challenge")
    from proctor.challenges import NewChallenge, new_challenge

    plan = NewChallenge(benchmark, data, media, track, title, training, pre_evaluation, test, seed)
    for name, count in new_challenge(folder, plan).items():
        say(f"{name}: {count_of(count, 'question')}")
    note(f"Next: edit {folder}/challenge.yaml; proctor challenge check {folder}")


def check(folder: ChallengeFolder, output: Output = OutputFormat.TABLE) -> None:
    """Check a challenge's folder.

    Settings, media, baselines; that what is handed out is what is marked, and nothing of it tells the references. Exit
    code 1 where something is wrong.

    Example: proctor challenge check sponges
    """
    check_extra("challenge")
    from proctor.challenges import check_challenge

    found = check_challenge(folder)
    ended = count_of(len(found.problems), "problem") if found.problems else "Nothing is wrong."
    report = PluginReport(found.record(), (*found.facts, *found.problems, ended), ok=not found.problems)
    show_plugin_report(report, output)


def verify(
    receipt: Annotated[Path, Option("The receipt's file.", metavar="RECEIPT", argument=True)],
    key: Annotated[str, Option("The challenge's public key: its digits, a file, or DIR.")],
    published: Annotated[Path | None, Option("The challenge, published with sealed/ after its end.")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a receipt's signature, offline.

    The public key stands on the challenge's page. With --published also that the questions, references and rules are
    those that it was marked by. Exit code 1 where something is not as the receipt says.

    Example: proctor challenge verify receipt.json --key receipt-key.txt
    """
    check_extra("challenge")
    from proctor.challenges import verify_commitment, verify_receipt

    found = verify_receipt(receipt, key)
    told = ["Signed by this challenge, and unchanged."]
    if published is not None:
        verify_commitment(found, published)
        told.append("Questions, references and rules are those that it was marked by.")
    lines = [f"{name}: {value}" for name, value in found.lines().items()]
    shown = (*told, *lines)
    show_plugin_report(PluginReport(found.model_dump(mode="json"), shown), output)


def open_phase(
    folder: ChallengeFolder,
    phase: PhaseName,
    executor: ExecutorName = "podman",
    no_oracle: Annotated[bool, Option("Without the cheat oracle; that is recorded.", "--no-oracle")] = False,
    store: ChallengeStore = None,
) -> None:
    """Check a phase and open it.

    The folder is checked; where the phase takes images, a program that cheats runs in a container and has to score at
    chance. Then the phase takes submissions, as its dates say.

    Example: proctor challenge open sponges pre-evaluation
    """
    check_extra("challenge")
    from proctor.challenges import Challenge
    from proctor.challenges import open_phase as opened
    from proctor.containers import executor_of

    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        checked = opened(challenge, phase, None if no_oracle else executor_of(executor))
    finally:
        challenge.close()
    for line in checked:
        note(line)
    say(f"{phase} is open")


def close_phase(folder: ChallengeFolder, phase: PhaseName, store: ChallengeStore = None) -> None:
    """Close a phase.

    It takes nothing more; what waits is still run and marked.

    Example: proctor challenge close sponges pre-evaluation
    """
    check_extra("challenge")
    from proctor.challenges import Challenge
    from proctor.challenges import close_phase as closed

    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        closed(challenge, phase)
    finally:
        challenge.close()
    say(f"{phase} is closed")


def status(folder: ChallengeFolder, store: ChallengeStore = None, output: Output = OutputFormat.TABLE) -> None:
    """Show how far each phase is.

    Its state, submissions by state, and what it has given away: how far above its true accuracy the best result may
    stand by luck, or by an attack, with the Monte Carlo error.

    Example: proctor challenge status sponges
    """
    check_extra("challenge")
    from proctor.challenges import Challenge, phase_rows, status_tables

    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        with challenge.reading() as connection:
            rows = phase_rows(connection, challenge)
    finally:
        challenge.close()
    tables = status_tables(rows)
    show(output, rows if output is OutputFormat.JSON else tables[0].records, *tables)
