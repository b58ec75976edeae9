"""``python -m tilefit`` is the command line."""

import sys

from tilefit.cli import main

if __name__ == "__main__":
    sys.exit(main())
