"""Web: sites in the browser, of which the review is one. Routes parse and render; this room's functions do the work."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.web.accounts import (
        AccountsLocation,
        InvitationLink,
        TrailReport,
        account_names,
        add_person,
        change_role,
        disable_person,
        find_account,
        invite_person,
        people_table,
        read_trail,
    )
    from proctor.web.busy import BusyError, WriterGate
    from proctor.web.pages import confirm, page
    from proctor.web.review import (
        EXPORTS,
        StudyUpdate,
        agreement_of,
        decisions_from,
        export_study,
        open_review,
        progress_tables,
        ratings_to_scores,
        reassign_work,
        sheet_for,
    )
    from proctor.web.schema import ROLES, new_token, utc_text
    from proctor.web.server import serve
    from proctor.web.sessions import Visitor, current, require, site_of, visitor_of
    from proctor.web.settings import is_address, review_accounts
    from proctor.web.site import Listening, Site, bound, private_store, signing_key
    from proctor.web.site_tables import ACCOUNT_TABLES, REVIEW_TABLES, prepare_accounts
    from proctor.web.stores import SiteStore, site_store
    from proctor.web.trail import first_fault, newest_change, pseudonym_of
    from proctor.web.trail import head as trail_head
    from proctor.web.trail import record as record_change
    from proctor.web.uploads import NoRoomError, Upload, receive_upload, remove_unfinished
else:
    export_lazily(__name__)

__all__ = [
    "ACCOUNT_TABLES", "EXPORTS", "REVIEW_TABLES", "ROLES", "AccountsLocation", "BusyError", "InvitationLink",
    "Listening", "NoRoomError", "Site", "SiteStore", "StudyUpdate", "TrailReport", "Upload",
    "Visitor", "WriterGate", "account_names", "add_person", "agreement_of", "bound", "change_role", "confirm",
    "current", "decisions_from", "disable_person", "export_study", "find_account", "first_fault", "invite_person",
    "is_address", "new_token", "newest_change", "open_review", "page", "people_table",
    "prepare_accounts", "private_store", "progress_tables", "pseudonym_of", "ratings_to_scores", "read_trail", "reassign_work",
    "receive_upload", "record_change", "remove_unfinished", "require", "review_accounts", "serve", "sheet_for",
    "signing_key", "site_of", "site_store", "trail_head", "utc_text", "visitor_of",
]  # fmt: skip
