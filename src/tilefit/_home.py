"""Where this package lies: its data, and what is no module of the user's."""

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib costs 5 ms
