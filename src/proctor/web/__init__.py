"""Web: review in the browser. Pages ask this room's functions; statistics and media are other rooms'."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.web.people import (
        InvitationLink,
        TrailReport,
        add_person,
        change_role,
        disable_person,
        invite_person,
        people_table,
        read_trail,
    )
    from proctor.web.schema import ROLES
    from proctor.web.server import Listening, StudyUpdate, bound, open_review, serve
    from proctor.web.shell import WHAT as EXPORTS
    from proctor.web.shell import (
        agreement_of,
        decisions_from,
        export_study,
        progress_tables,
        ratings_to_scores,
        reassign_work,
        sheet_for,
    )
else:
    export_lazily(__name__)

__all__ = [
    "EXPORTS", "ROLES", "InvitationLink", "Listening", "StudyUpdate", "TrailReport", "add_person", "agreement_of",
    "bound", "change_role", "decisions_from", "disable_person", "export_study", "invite_person", "open_review",
    "people_table", "progress_tables", "ratings_to_scores", "read_trail", "reassign_work", "serve", "sheet_for",
]  # fmt: skip
