"""Which tests are slow: made from the durations of a whole run.

    python -m pytest -m "" --durations=0 > durations.txt; python -m tests.slow durations.txt ...

writes tests/slow.txt; of several runs the longest time of a test counts. A test is slow that took
more than two and a half seconds. What is run for many parameters keeps its quickest in the fast
tier, as far as ten seconds go, and always one if that takes less than six: each kind is there.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW_SECONDS = 2.5
ONE_OF_A_KIND_SECONDS = 6.0
KIND_SECONDS = 10.0
# tests/test_corpus.py marks its own: what it lowers for one target, its other tests share
OF_ITS_OWN = "tests/test_corpus.py::"
LIST = Path(__file__).with_name("slow.txt")


def slow_tests(durations: str) -> list[str]:
    """Return the ids of the tests that are slow by what pytest's ``--durations=0`` printed."""
    seconds: dict[str, float] = {}
    for each, test in re.findall(r"^\s*([\d.]+)s call +(tests/\S.*)$", durations, re.M):
        if not test.startswith(OF_ITS_OWN):
            seconds[test] = max(float(each), seconds.get(test, 0.0))
    kinds: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        kinds[test.partition("[")[0]].append(test)
    slow: set[str] = set()
    for kind in kinds.values():
        spent = 0.0
        for number, test in enumerate(sorted(kind, key=seconds.__getitem__)):
            each = seconds[test]
            spent += each
            first_of_many = number == 0 and len(kind) > 1 and each < ONE_OF_A_KIND_SECONDS
            if not first_of_many and (each > SLOW_SECONDS or spent > KIND_SECONDS):
                slow.add(test)
    return sorted(slow)


if __name__ == "__main__":
    found = slow_tests("\n".join(Path(name).read_text(encoding="utf-8") for name in sys.argv[1:]))
    LIST.write_text("".join(f"{test}\n" for test in found), encoding="utf-8")
    print(f"{len(found)} slow tests")
