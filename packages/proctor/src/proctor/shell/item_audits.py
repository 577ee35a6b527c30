"""Models that audit the options of items (`proctor audit items --model`), and the facet that an audit of items gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proctor.shell.model_options import ModelOptions
from proctor.shell.options import filled
from proctor.shell.systems import ModelAccess

if TYPE_CHECKING:
    from proctor.audits.items import ItemAudit, ModelReplies
    from proctor.core import Item
    from proctor.models import ModelSpec
    from proctor.runs import PaidJudgements, Store


async def ask_option_auditors(
    items: Sequence[Item],
    models: Sequence[str | ModelSpec],
    paid: PaidJudgements,
    options: ModelOptions,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[ModelReplies]:
    """The replies of each model about the options of choices (see `proctor.systems.ask_option_auditors`). Those that the
    store behind `paid` has are not asked for again. Raises `ConfigurationError` if a server can't be reached, before
    anything is paid."""
    from proctor.systems import ask_option_auditors as ask

    access = ModelAccess(filled("audit items", ModelOptions, options))
    clients = access.clients(models)
    found: list[ModelReplies] = []
    async with access.closing():
        await access.check_servers()
        for client in clients:
            found += await ask(items, client, paid, seed=seed, progress=progress)
    return found


def flag_guessable(store: Store, benchmark: str, audit: ItemAudit) -> int:
    """Stores the facet `guessable` of an audit, for `--by guessable`; returns the number of guessable items."""
    from proctor.results import GUESSABLE, guessable_flags

    store.set_flags(benchmark, GUESSABLE, guessable_flags(audit))
    return sum(audit.guessable.values())
