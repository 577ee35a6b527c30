"""`proctor challenge team` and `submission`: what organisers do besides running phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli import Output, OutputFormat, print_json, print_line, show
from proctor.core import InputError, Option, UsageError, count_of, one_of, shell_word
from proctor.shell import names_in
from proctor_challenge.commands.challenge import ChallengeFolder, ChallengeStore

if TYPE_CHECKING:
    from proctor_challenge import Challenge


@contextmanager
def _opened(folder: Path, store: str | None, *, create: bool = False) -> Iterator[Challenge]:
    from proctor_challenge import Challenge

    with closing(Challenge.open(folder, "organiser", store=store, create=create)) as challenge:
        yield challenge


def _show_rows(rows: Sequence[Mapping[str, Any]], title: str, names: Sequence[str], output: OutputFormat) -> None:
    """Rows as JSON with all fields, or a table of some of them."""
    from proctor.reports import fields_table

    table = fields_table(title, rows, names)
    heads = [name.replace("_", " ") for name in names]
    show(output, rows if output is OutputFormat.JSON else table.records, table, names=heads)


def _list_teams(folder: Path, store: str | None, output: OutputFormat) -> None:
    with _opened(folder, store) as challenge, challenge.reading() as connection:
        from proctor_challenge import team_rows

        rows = team_rows(connection, challenge)
    names = ("name", "country", "members", "eligible", "listed", "submissions", "results", "passed", "described")
    more = tuple(name for name in ("withdrawn", "disqualified") if any(row[name] for row in rows))
    _show_rows(rows, "Teams", names + more, output)


_DESCRIPTIONS = {
    "describe": "submit",
    "save-description": "save",
    "accept-description": "accept",
    "reject-description": "reject",
}
"""Actions on the description of a team's method."""


def _team_actions() -> list[str]:
    return ["list", *names_in("proctor_challenge:TEAM_ACTIONS")(), *_DESCRIPTIONS]


def team(
    action: Annotated[
        str,
        Option(
            "list, add, withdraw, disqualify, readmit, eligible, ineligible, join, remove, code; describe, "
            "save-description, accept-description, reject-description.",
            metavar="ACTION",
            argument=True,
            names=_team_actions,
        ),
    ],
    folder: ChallengeFolder,
    name: Annotated[str, Option("The team's name, in any case.", metavar="[TEAM]", argument=True)] = "",
    institution: Annotated[str, Option("Of a new team.")] = "",
    country: Annotated[str, Option("Of a new team: two letters, such as AT.")] = "",
    agreed: Annotated[bool, Option("A new team agreed to the terms.", "--agreed")] = False,
    not_eligible: Annotated[bool, Option("A new team gets no awards.", "--not-eligible")] = False,
    not_listed: Annotated[bool, Option("A new team's results stay unnamed.", "--not-listed")] = False,
    why: Annotated[str, Option("Why a team or description is refused, which the team sees.")] = "",
    member: Annotated[str, Option("The account that joins or is removed.")] = "",
    phase: Annotated[str, Option("The phase of a description.")] = "",
    file: Annotated[Path | None, Option("The description: a PDF or plain text.")] = None,
    store: ChallengeStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List, add or change teams and descriptions.

    list shows members, awards, submissions, results, the phases whose gate a team has passed, and those for which it has
    described its method. A withdrawn or disqualified team can't submit, and no board shows it, until it is readmitted.
    join moves an account (proctor serve users add) into the team; code replaces the code by which members join. All of
    it is in the trail.

    describe hands --file in as the description of a team's method in --phase; save-description writes it to --file. A
    phase may require a description for prizes or for a rank (description: {required_for: prizes} in challenge.yaml); a
    rejected one does not suffice.

    Example: proctor challenge team add sponges "Hand Surgeons" --institution Clinic --country AT --agreed
    """
    if action == "list":
        _list_teams(folder, store, output)
        return
    if not name:
        raise UsageError('TEAM is missing. Example: proctor challenge team withdraw sponges "Hand Surgeons"')
    with _opened(folder, store, create=action == "add") as challenge:
        from proctor_challenge import TeamChange, change_description, change_team

        if action in _DESCRIPTIONS:
            if not phase:
                raise UsageError("--phase is missing. Give the phase of the description.")
            print_line(change_description(challenge, _DESCRIPTIONS[action], phase, name, file, why))
        else:
            change = TeamChange(institution, country, agreed, not_eligible, not_listed, why, member)
            print_line(change_team(challenge, action, name, change))


def _list_submissions(folder: Path, phase: str, team: str, state: str, store: str | None, output: OutputFormat) -> None:
    with _opened(folder, store) as challenge, challenge.reading() as connection:
        from proctor_challenge import submission_rows

        rows = submission_rows(connection, challenge, phase, team, state)
    names = ("submission", "phase", "kind", "state", "reason", "wrong", "submitted")
    more = ("disqualified",) if any(row["disqualified"] for row in rows) else ()
    _show_rows(rows, "Submissions", names + more, output)


def _submission_actions() -> list[str]:
    return ["list", "add", *names_in("proctor_challenge:SUBMISSION_ACTIONS")(), "receipt", "rescore"]


def submission(
    action: Annotated[
        str,
        Option(
            "list, add, cancel, disqualify, reinstate, receipt, or rescore.",
            metavar="ACTION",
            argument=True,
            names=_submission_actions,
        ),
    ],
    folder: ChallengeFolder,
    phase: Annotated[str, Option("A phase of it.", metavar="[PHASE]", argument=True)] = "",
    name: Annotated[
        str, Option("Its team and number, such as Alpha#2; add: the team.", metavar="[TEAM#NUMBER]", argument=True)
    ] = "",
    file: Annotated[Path | None, Option("add: answers, or an image's archive.")] = None,
    again: Annotated[bool, Option("add: also a file that the team has submitted before.", "--again")] = False,
    why: Annotated[str, Option("Why one is disqualified (its team sees it), or all are rescored.")] = "",
    team: Annotated[str, Option("list: of this team only.")] = "",
    state: Annotated[str, Option("list: in this state only, such as queued.")] = "",
    out: Annotated[Path | None, Option("receipt: where it is written. [default: printed]")] = None,
    store: ChallengeStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List, add, judge or rescore submissions.

    list shows their states. "wrong" is the number of questions whose answer a file lacks, or that it answers late or
    unreadably. JSON also has the problems of refused ones and the hashes of the uploads. A disqualified one is on no
    board and still counts for the quota; reinstate takes it back. receipt prints the signed receipt of a result, as its
    team gets it (proctor check receipt checks it).

    add submits --file for a team, as on the page: the same checks and quotas apply. Exit code 1 if it is refused. Answers
    that are missing, late or not in their format are accepted, listed, and counted as wrong.

    rescore is for changed code, another judge or reference, or a judge that was not reachable. All submissions without a
    result from the current scorer are queued for workers. No system is asked again. Boards change when all are scored.

    Example: proctor challenge submission disqualify sponges test Alpha#2 --why "speaks to the judge"
    """
    if action not in _submission_actions():
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of(_submission_actions(), action)}")
    if action == "list":
        _list_submissions(folder, phase, team, state, store, output)
    elif action == "rescore":
        _rescore(folder, why, store)
    elif action == "add":
        _add_submission(folder, phase, name, file, store, again=again)
    elif not name:
        raise UsageError(
            "PHASE and TEAM#NUMBER are needed. Example: proctor challenge submission receipt DIR test Alpha#2"
        )
    elif action == "receipt":
        _receipt(folder, phase, name, out, store)
    else:
        with _opened(folder, store) as challenge:
            from proctor_challenge import change_submission

            print_line(change_submission(challenge, action, phase, name, why))


def _add_submission(folder: Path, phase: str, team: str, file: Path | None, store: str | None, *, again: bool) -> None:
    if not team or file is None:
        raise UsageError(
            "PHASE, TEAM and --file are needed. Example: proctor challenge submission add DIR test Alpha --file answers.json"
        )
    from proctor_challenge import submission_rows, submit_file

    with _opened(folder, store) as challenge:
        number, problems = submit_file(challenge, phase, team, file, again=again)
        with challenge.reading() as connection:
            rows = submission_rows(connection, challenge, phase, team)
    for line in problems:
        print_line(line)
    if problems:
        print_line(f"{team}#{number} was refused")
        raise typer.Exit(1)
    row = next(row for row in rows if row["submission"].rpartition("#")[2] == str(number))
    for line in row["wrong_lines"]:
        print_line(line)
    counted = f"; {count_of(row['wrong'], 'question')} counted as wrong" if row["wrong"] else ""
    print_line(f"{team}#{number} was queued{counted}")


def _receipt(folder: Path, phase: str, name: str, out: Path | None, store: str | None) -> None:
    with _opened(folder, store) as challenge:
        from proctor_challenge import signed_receipt

        found = signed_receipt(challenge, phase, name)
    if out is None:
        print_json(found.model_dump(mode="json"))
        return
    if out.exists():
        raise InputError(out, found="a file that is there", expected="a new one")
    out.write_text(found.text(), encoding="utf-8")
    print_line(f"{out} written")


def _rescore(folder: Path, why: str, store: str | None) -> None:
    from proctor_challenge import rerun

    if not why:
        raise UsageError("--why is missing. Give the reason, for the record.")
    version, count = rerun(folder, why, store)
    print_line(
        f"Scorer version {version}: {count_of(count, 'submission')} waiting for workers (proctor worker {shell_word(folder)})"
    )
