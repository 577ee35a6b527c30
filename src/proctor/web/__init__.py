"""Web: review in the browser. Pages ask this room's functions; statistics and media are other rooms'."""
