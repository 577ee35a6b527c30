"""The pages of a challenge: registration and teams, handing in, one's own submissions, boards, an organiser's view."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_challenge.pages.site import challenge_accounts, open_challenge
else:
    export_lazily(__name__)

__all__ = ["challenge_accounts", "open_challenge"]
