"""Routes: each module has a `router`. A route parses what came, asks the room, and fills in a page."""
