"""What the tests share: where real data lies, and how hypothesis runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ci")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def data_folder(name: str) -> Path | None:
    """The folder of a real data set, or None where this machine has none."""
    homes = [os.environ.get("WIDEMARGIN_DATA"), Path.home() / ".cache" / "widemargin"]
    for home in homes:
        if home and (folder := Path(home) / name).is_dir():
            return folder
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked `needs_data("a9a")` where the folder `a9a` is absent."""
    for marker in item.iter_markers("needs_data"):
        for name in marker.args:
            if data_folder(name) is None:
                pytest.skip(f"no folder {name!r} of real data; set WIDEMARGIN_DATA to its parent")


@pytest.fixture
def data_home(request: pytest.FixtureRequest) -> Path:
    """The parent of the folders named by the test's `needs_data` marker."""
    marker = request.node.get_closest_marker("needs_data")
    folder = data_folder(marker.args[0]) if marker else None
    if folder is None:
        pytest.skip("no real data; set WIDEMARGIN_DATA to the folder that holds the data sets")
    return folder.parent
