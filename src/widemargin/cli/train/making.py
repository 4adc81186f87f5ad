"""What models know about the machine they were made on."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np

from ... import __version__


def versions() -> dict[str, Any]:
    """Versions of programs, and the machine."""
    import numba
    import scipy
    import sklearn

    found = {"widemargin": __version__, "python": platform.python_version()}
    found |= {lib.__name__: lib.__version__ for lib in (np, scipy, sklearn, numba)}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"versions": found, "machine": machine}
