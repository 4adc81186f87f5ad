"""Self-contained HTML pages: what the report of a model, the demo and `reproduce` are made of."""
