"""`proctor challenge teams`, `submissions`, `prizes` and others: what organisers do besides running phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from proctor.cli.challenge import ChallengeFolder, ChallengeStore, PhaseName
from proctor.cli.output import Output, OutputFormat, note, print_json, say, show
from proctor.cli.web import check_extra
from proctor.core import InputError, Option, count_of, plain_table
from proctor.shell import names_in

if TYPE_CHECKING:
    from proctor.challenges import Challenge

TeamName = Annotated[str, Option("The team's name, in any case.", metavar="TEAM", argument=True)]

SubmissionName = Annotated[str, Option("Its team and number, such as Alpha#2.", metavar="TEAM#NUMBER", argument=True)]


@contextmanager
def _opened(folder: Path, store: str | None, *, create: bool = False) -> Iterator[Challenge]:
    check_extra("challenge")
    from proctor.challenges import Challenge

    with closing(Challenge.open(folder, "organiser", store=store, create=create)) as challenge:
        yield challenge


def _show_rows(rows: Sequence[Mapping[str, Any]], title: str, names: Sequence[str], output: OutputFormat) -> None:
    """Rows as JSON with all fields, or a table of some of them."""
    heads = tuple(name.replace("_", " ") for name in names)
    cells = tuple(tuple(_cell(row[name]) for name in names) for row in rows)
    table = plain_table(title, heads, cells)
    show(output, rows if output is OutputFormat.JSON else table.records, table, names=heads)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def teams(folder: ChallengeFolder, store: ChallengeStore = None, output: Output = OutputFormat.TABLE) -> None:
    """List the teams.

    Shows members, awards, submissions, results, the phases whose gate a team has passed, and those for which it has
    described its method.

    Example: proctor challenge teams sponges
    """
    with _opened(folder, store) as challenge, challenge.reading() as connection:
        from proctor.challenges import team_rows

        rows = team_rows(connection, challenge)
    names = ("name", "country", "members", "eligible", "listed", "submissions", "results", "passed", "described")
    more = tuple(name for name in ("withdrawn", "disqualified") if any(row[name] for row in rows))
    _show_rows(rows, "Teams", names + more, output)


def team(
    action: Annotated[
        str,
        Option(
            "add, withdraw, disqualify, readmit, eligible, ineligible, join, remove, or code.",
            metavar="ACTION",
            argument=True,
            names=names_in("proctor.challenges:TEAM_ACTIONS"),
        ),
    ],
    folder: ChallengeFolder,
    name: TeamName,
    institution: Annotated[str, Option("Of a new team.")] = "",
    country: Annotated[str, Option("Of a new team: two letters, such as AT.")] = "",
    agreed: Annotated[bool, Option("A new team agreed to the terms.", "--agreed")] = False,
    not_eligible: Annotated[bool, Option("A new team gets no awards.", "--not-eligible")] = False,
    not_listed: Annotated[bool, Option("A new team's results stay unnamed.", "--not-listed")] = False,
    why: Annotated[str, Option("The reason of a disqualification, which the team sees.")] = "",
    member: Annotated[str, Option("The account that joins or is removed.")] = "",
    store: ChallengeStore = None,
) -> None:
    """Add, change or withdraw a team.

    A withdrawn or disqualified team can't submit, and no board shows it, until it is readmitted. join moves an account
    (proctor users add) into the team; code replaces the code by which members join. All of it is in the trail.

    Example: proctor challenge team add sponges "Hand Surgeons" --institution Clinic --country AT --agreed
    """
    with _opened(folder, store, create=action == "add") as challenge:
        from proctor.challenges import TeamChange, change_team

        change = TeamChange(institution, country, agreed, not_eligible, not_listed, why, member)
        say(change_team(challenge, action, name, change))


def submissions(
    folder: ChallengeFolder,
    phase: Annotated[str, Option("Of this phase. [default: all]", metavar="[PHASE]", argument=True)] = "",
    team: Annotated[str, Option("Of this team only.")] = "",
    state: Annotated[str, Option("In this state only, such as queued.")] = "",
    store: ChallengeStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the submissions with their states.

    "wrong" is the number of questions whose answer a file lacks, or that it answers late or unreadably. JSON also has
    the problems of refused ones and the hashes of the uploads.

    Example: proctor challenge submissions sponges pre-evaluation --state refused
    """
    with _opened(folder, store) as challenge, challenge.reading() as connection:
        from proctor.challenges import submission_rows

        rows = submission_rows(connection, challenge, phase, team, state)
    names = ("submission", "phase", "kind", "state", "reason", "wrong", "submitted")
    more = ("disqualified",) if any(row["disqualified"] for row in rows) else ()
    _show_rows(rows, "Submissions", names + more, output)


def submission(
    action: Annotated[
        str,
        Option(
            "cancel, disqualify, or reinstate.",
            metavar="ACTION",
            argument=True,
            names=names_in("proctor.challenges:SUBMISSION_ACTIONS"),
        ),
    ],
    folder: ChallengeFolder,
    phase: PhaseName,
    name: SubmissionName,
    why: Annotated[str, Option("The reason of a disqualification, which the team sees.")] = "",
    store: ChallengeStore = None,
) -> None:
    """Cancel or disqualify a submission.

    A disqualified one is on no board and still counts for the quota; reinstate takes it back.

    Example: proctor challenge submission disqualify sponges test Alpha#2 --why "speaks to the judge"
    """
    with _opened(folder, store) as challenge:
        from proctor.challenges import change_submission

        say(change_submission(challenge, action, phase, name, why))


def receipt(
    folder: ChallengeFolder,
    phase: PhaseName,
    name: SubmissionName,
    out: Annotated[Path | None, Option("Where it is written. [default: printed]")] = None,
    store: ChallengeStore = None,
) -> None:
    """Print the signed receipt of a result.

    As its team gets it; proctor challenge verify checks it.

    Example: proctor challenge receipt sponges pre-evaluation Alpha#2 --out receipt.json
    """
    with _opened(folder, store) as challenge:
        from proctor.challenges import signed_receipt

        found = signed_receipt(challenge, phase, name)
    if out is None:
        print_json(found.model_dump(mode="json"))
        return
    if out.exists():
        raise InputError(out, found="a file that is there", expected="a new one")
    out.write_text(found.text(), encoding="utf-8")
    say(f"{out} written")


def questions(folder: ChallengeFolder, phase: PhaseName) -> None:
    """Write a phase's questions without references.

    For a phase that was added to challenge.yaml by hand: its sealed questions are written into its public folder
    (questions: …, by default public/PHASE), and compared with those that are scored.

    Example: proctor challenge questions sponges test
    """
    check_extra("challenge")
    from proctor.challenges import write_public_questions

    place, count = write_public_questions(folder, phase)
    say(f"{place}: {count_of(count, 'question')} without references")
    note(f"In challenge.yaml, {phase} needs: questions: {place}")


def prizes(
    folder: ChallengeFolder, phase: PhaseName, store: ChallengeStore = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show who gets which prize in a phase.

    By the newest boards and the present decisions on teams and submissions: places, shares of the money, who is
    announced, who may name co-authors, and why others get no prize. The rule is printed below.

    Example: proctor challenge prizes sponges test
    """
    with _opened(folder, store) as challenge:
        from proctor.challenges import prize_tables, prizes_of

        content = prizes_of(challenge, phase)
    tables = prize_tables(content)
    if output is OutputFormat.TABLE:
        show(output, [], *tables, *content["rule"])
    else:
        pairs = zip(content["boards"], tables, strict=True)
        rows = [row | {"Board": board["name"]} for board, table in pairs for row in table.records]
        show(output, [content] if output is OutputFormat.JSON else rows)
    if content["outdated"]:
        note("Places are from before the last decision on a team or submission: a worker recomputes them.")


def description(
    action: Annotated[
        str,
        Option(
            "submit, save, reject, or accept.",
            metavar="ACTION",
            argument=True,
            names=names_in("proctor.challenges:DESCRIPTION_ACTIONS"),
        ),
    ],
    folder: ChallengeFolder,
    phase: PhaseName,
    team: TeamName,
    file: Annotated[Path | None, Option("A PDF or plain text.", metavar="[FILE]", argument=True)] = None,
    why: Annotated[str, Option("Why it does not suffice, which the team sees.")] = "",
    store: ChallengeStore = None,
) -> None:
    """Hand in or judge a method's description.

    submit hands FILE in for a team, save writes it to FILE. A phase may require a description for prizes or for a place
    (description: {required_for: prizes} in challenge.yaml); a rejected one does not suffice.

    Example: proctor challenge description submit sponges test "Hand Surgeons" method.pdf
    """
    with _opened(folder, store) as challenge:
        from proctor.challenges import change_description

        say(change_description(challenge, action, phase, team, file, why))
