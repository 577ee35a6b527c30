"""The prize table of a phase: who gets which share of the money, who is announced, and who may name co-authors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from proctor.core import InputError, Table, one_of, plain_table
from proctor_challenge.awards import Contender, announced_teams, prize_shares
from proctor_challenge.board_pages import Visitor, visible_boards
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import described, description_fault
from proctor_challenge.settings import CHALLENGE_FILE, Phase, Prizes

NOT_ASSIGNED, NOT_ABOVE, NOT_ELIGIBLE = "no rank", "not above every baseline", "not eligible for awards"
NO_DESCRIPTION, INSUFFICIENT = "no description of the method", "description does not suffice"


def prize_table(
    connection: Connection, challenge: Challenge, phase: str, visitor: Visitor = "organiser"
) -> dict[str, Any] | None:
    """Who gets what in a phase, by its newest boards and the present rulings; None without boards, and for others than
    organisers before it is announced.

    Organisers see every team with the reasons why it gets no prize. Others see the teams that get a prize or are
    announced; a team that is not listed has no name. Raises `InputError` for money for a board that is not there.
    """
    rules, now = challenge.phase(phase), challenge.now()
    prizes = rules.prizes or Prizes()
    if visitor != "organiser" and (rules.prizes is None or prizes.at is None or now < prizes.at):
        return None
    seen = visible_boards(connection, challenge.settings, phase, "organiser", now)
    if seen is None:
        return None
    named = [board["name"] for board in seen["boards"]]
    if unknown := [name for name in prizes.boards if name not in named]:
        location = f"phase {phase}, prizes, boards"
        raise InputError(CHALLENGE_FILE, location, found=repr(unknown[0]), expected=one_of(named, unknown[0]))
    faults = {team: description_fault(row) for team, row in described(connection, rules).items()}
    boards = [_board(board, rules, prizes, faults, len(seen["boards"])) for board in seen["boards"]]
    _name_coauthors(boards, prizes)
    facts = {"phase": phase, "at": seen["at"], "outdated": seen["outdated"], "rule": prize_rule(rules)}
    facts |= {"amount": prizes.amount, "currency": prizes.currency, "announced": prizes.announced}
    if visitor != "organiser":
        boards = [board | {"rows": [_public(row) for row in board["rows"] if _is_shown(row)]} for board in boards]
    return facts | {"boards": boards}


def _board(board: dict[str, Any], rules: Phase, prizes: Prizes, faults: dict[int, str], count: int) -> dict[str, Any]:
    part = Fraction(str(prizes.boards.get(board["name"], 0))) / 100 if prizes.boards else Fraction(1, count)
    teams = [row for row in board["rows"] if not row["baseline"]]
    contenders = [
        Contender(
            row["name"], row["rank"], not row.get("below_line"), _reasons(row, rules, faults.get(row["team"], "none"))
        )
        for row in teams
    ]
    shares, first = prize_shares(contenders, prizes.split), announced_teams(contenders, prizes.announced)
    rows = []
    for row, contender in zip(teams, contenders, strict=True):
        share = shares.get(contender.name, Fraction(0))
        money = None if prizes.amount is None else _money(share * part, prizes.amount)
        told = {"rank": contender.rank, "team": contender.name, "listed": row["listed"], "above": contender.above}
        told |= {"prize": round(100 * float(share), 2), "of_all": round(100 * float(share * part), 2), "amount": money}
        told |= {"announced": contender.name in first, "reasons": list(contender.reasons)}
        rows.append(told)
    left = max(Fraction(0), _whole(prizes) - sum(shares.values(), Fraction(0)))
    facts = {"name": board["name"], "title": board["title"], "of_all": round(100 * float(part), 2)}
    return facts | {"left": round(100 * float(left), 2), "rows": rows}


def _whole(prizes: Prizes) -> Fraction:
    return sum((Fraction(str(part)) / 100 for part in prizes.split), Fraction(0))


def _money(share: Fraction, amount: float) -> float:
    """A share of an amount, rounded down to hundredths, so that no more than all is given."""
    return int(share * Fraction(str(amount)) * 100) / 100


def _reasons(row: dict[str, Any], rules: Phase, fault: str) -> tuple[str, ...]:
    reasons = [NOT_ASSIGNED] if row["rank"] is None else []
    reasons += [NOT_ABOVE] if row.get("below_line") else []
    reasons += [] if row["eligible"] else [NOT_ELIGIBLE]
    if rules.description.required_for != "nothing" and fault:
        reasons.append(NO_DESCRIPTION if fault == "none" else f"{INSUFFICIENT}: {fault}")
    return tuple(reasons)


def _name_coauthors(boards: Sequence[dict[str, Any]], prizes: Prizes) -> None:
    """Adds to each row how many co-authors its team may name: if it beats every baseline of one of the boards."""
    above = {row["team"] for board in boards for row in board["rows"] if row["above"] and row["rank"] is not None}
    for board in boards:
        for row in board["rows"]:
            row["coauthors"] = prizes.coauthors if row["team"] in above else 0


def _is_shown(row: dict[str, Any]) -> bool:
    return bool(row["prize"] or row["announced"])


def _public(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in {"reasons", "listed"}}
    return kept if row["listed"] else kept | {"team": ""}


def prize_rule(rules: Phase) -> list[str]:
    """The rule of a phase in words, a sentence each."""
    prizes = rules.prizes or Prizes()
    needs = ", are eligible for awards"
    needs += ", and have handed in a description of their method" if rules.description.required_for != "nothing" else ""
    split = ", ".join(f"{part:g}" for part in prizes.split)
    return [
        f"The first teams of a board that beat every baseline on it{needs} get {split} % of its money.",
        "Any other team keeps its rank and gets no prize: the next team moves up.",
        "Teams that share a rank get equal parts of the sum of the percentages of the ranks that they take up.",
        "What is left where fewer teams meet the conditions is not awarded.",
        f"Announced are the first {prizes.announced} teams of a board that beat every baseline on it.",
        f"A team that beats every baseline of at least one board may name up to {prizes.coauthors} co-authors.",
    ]


def prizes_of(challenge: Challenge, phase: str) -> dict[str, Any]:
    """The prize table of a phase for an organiser. Raises `InputError` for a phase without boards."""
    with challenge.reading() as connection:
        found = prize_table(connection, challenge, phase)
    if found is None:
        raise InputError(f"phase {phase}", found="no boards", expected="a result that a worker has scored")
    return found


def prize_tables(content: dict[str, Any]) -> list[Table]:
    """One table per board, with the rule below the last one."""
    tables = []
    money = content["amount"] is not None
    heads = (">Rank", "Team", "Above baselines", ">Prize", ">Of all", *((">Amount",) if money else ()))
    for board in content["boards"]:
        rows = tuple(_cells(row, content["currency"], money=money) for row in board["rows"])
        left = f"; {board['left']:g} % not awarded" if board["left"] else ""
        title = f"{board['title']} ({board['of_all']:g} % of all prizes{left})"
        tables.append(plain_table(title, (*heads, "Announced", ">Co-authors", "No prize because"), rows))
    return tables


def _cells(row: dict[str, Any], currency: str, *, money: bool) -> tuple[str, ...]:
    amount = (f"{row['amount']:,.2f} {currency}".strip() if row["amount"] else "",) if money else ()
    share = (f"{row[name]:g} %" if row["prize"] else "" for name in ("prize", "of_all"))
    return (
        str(row["rank"] or ""),
        row["team"] or "not listed",
        "yes" if row["above"] else "no",
        *share,
        *amount,
        "yes" if row["announced"] else "",
        str(row["coauthors"] or ""),
        "; ".join(row.get("reasons", ())),
    )
