"""Videos before anything is made of them: checked, and without what must not leave the hospital."""

__all__: list[str] = []
