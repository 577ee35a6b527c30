"""View: a store of answers in the browser, live, and never written to. Routes parse and render; `StoreWatch` follows the store."""
