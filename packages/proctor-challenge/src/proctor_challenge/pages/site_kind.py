"""What `proctor serve` serves where a folder holds `challenge.yaml`."""

from proctor_challenge.pages.site import challenge_accounts, open_challenge
from proctor_web import SiteKind

KIND = SiteKind(open_challenge, challenge_accounts)
