"""Programs to run: `python -m widemargin.cli.demo`."""
