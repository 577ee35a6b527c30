"""Challenges: submissions, a queue with leases, sealed references, boards and receipts. It knows no task."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.challenges.checks import check_challenge
    from proctor.challenges.folder import NewChallenge, new_challenge
    from proctor.challenges.packs.platforms import PLATFORMS, check_pack, pack_folder, write_pack
else:
    export_lazily(__name__)

__all__ = ["PLATFORMS", "NewChallenge", "check_challenge", "check_pack", "new_challenge", "pack_folder", "write_pack"]
