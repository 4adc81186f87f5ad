"""Speed and memory against peers in the same run: `make bench` or `python -m benchmarks`."""
