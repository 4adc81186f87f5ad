"""Speed and memory against peers, measured in the same run. `make bench` or `python -m benchmarks`."""
