"""Programs to run: the command `widemargin`, and `python -m widemargin.cli.demo`."""
