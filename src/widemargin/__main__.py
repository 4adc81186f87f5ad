"""`python -m widemargin` is the command `widemargin`."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
