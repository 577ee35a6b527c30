"""Models that audit the options of items: the calls behind `proctor items audit --model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proctor.api.access import ModelAccess
from proctor.api.model_options import ModelOptions
from proctor.api.options import filled

if TYPE_CHECKING:
    from proctor.audits.items import ModelReplies
    from proctor.core import Item
    from proctor.models import ModelSpec
    from proctor.runs import PaidVotes


async def ask_option_auditors(
    items: Sequence[Item],
    models: Sequence[str | ModelSpec],
    paid: PaidVotes,
    options: ModelOptions,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[ModelReplies]:
    """The replies of each model about the options of choices (see `proctor.systems.ask_option_auditors`). Those that the
    store behind `paid` has are not asked for again. Raises `ConfigurationError` if a server can't be reached, before
    anything is paid."""
    from proctor.systems import ask_option_auditors as ask

    access = ModelAccess(filled("items audit", ModelOptions, options))
    clients = access.clients(models)
    found: list[ModelReplies] = []
    async with access.closing():
        await access.check_servers()
        for client in clients:
            found += await ask(items, client, paid, seed=seed, progress=progress)
    return found
