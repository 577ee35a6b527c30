"""Challenges: submissions, a queue with leases, sealed references, boards and receipts. It knows no task."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_challenge.board_pages import board_lines, board_tables, seen_boards, write_boards
    from proctor_challenge.challenge import Challenge
    from proctor_challenge.copying import CopiedStore, copy_store
    from proctor_challenge.demonstration import demonstrate
    from proctor_challenge.execution import Trial, examine_machine, try_image
    from proctor_challenge.folder import NewChallenge, check_challenge, new_challenge, write_public_questions
    from proctor_challenge.opening import close_phase, open_phase, phase_rows, status_tables
    from proctor_challenge.organising import (
        DESCRIPTION_ACTIONS,
        SUBMISSION_ACTIONS,
        TEAM_ACTIONS,
        TeamChange,
        change_description,
        change_submission,
        change_team,
        signed_receipt,
        submission_rows,
        team_rows,
    )
    from proctor_challenge.packs.platforms import PLATFORMS, check_pack, pack_folder, write_pack
    from proctor_challenge.pages import challenge_accounts, open_challenge
    from proctor_challenge.prizes import prize_tables, prizes_of
    from proctor_challenge.receipts import verify_commitment, verify_receipt
    from proctor_challenge.uploads import submit_file
    from proctor_challenge.worker import WorkPlan, rerun, work_on
else:
    export_lazily(__name__)

__all__ = [
    "DESCRIPTION_ACTIONS", "PLATFORMS", "SUBMISSION_ACTIONS", "TEAM_ACTIONS", "Challenge", "CopiedStore",
    "NewChallenge", "TeamChange", "Trial", "WorkPlan", "board_lines", "board_tables", "challenge_accounts",
    "change_description", "change_submission", "change_team", "check_challenge", "check_pack", "close_phase", "copy_store",
    "demonstrate", "examine_machine", "new_challenge", "open_challenge", "open_phase", "pack_folder", "phase_rows",
    "prize_tables", "prizes_of", "rerun", "seen_boards", "signed_receipt", "status_tables", "submission_rows",
    "submit_file", "team_rows", "try_image", "verify_commitment", "verify_receipt", "work_on", "write_boards",
    "write_pack", "write_public_questions",
]  # fmt: skip
