"""Running a file the way ``python FILE`` does, in this process and within a time."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tilefit._frontends.importing import broken_ones_left_out, folders_of, package_of
from tilefit._frontends.loaded import note_executed_files
from tilefit._frontends.stand_ins.unknown import MissingModule
from tilefit._frontends.tilelang.versions import with_version
from tilefit._frontends.user_code import describe, one_line, process_kept


class TimeUpError(BaseException):
    """Main ran for as long as it may; user code that catches Exception must not catch this."""


class TestsFailedError(Exception):
    """Tests of the file failed; `errors` says how."""

    def __init__(self, errors: list[BaseException]) -> None:
        super().__init__()
        self.errors = errors


def run_as_main(
    path: Path, seconds: float, told: Sequence[BaseException]
) -> tuple[ModuleType, str | None, tuple[str, ...]]:
    """Execute a file as ``__main__``.

    Args:
        path: The file.
        seconds: Time after which it is ended.
        told: Exceptions that are reported elsewhere; it grows while the file runs.

    Returns:
        Its module, and in one line what ended it early: None if nothing did, or nothing that is
        not reported elsewhere, or it exited on purpose. And a line for each package around it
        that could not be imported.
    """
    note_executed_files()
    path = path.resolve()
    module = _main_module(path)
    sys.modules["__main__"] = module
    sys.argv = [str(path)]
    usage: list[str] = []
    _remember_usage_errors(usage)
    text = path.read_text(encoding="utf-8", errors="replace")
    if "tilelang.testing" in text or "pytest" in text:
        _run_tests_directly()
    package = module.__package__ or ""
    with broken_ones_left_out(package, folders_of(path)) as notes:
        return module, _ended_by(path, module, seconds, told, usage), tuple(notes)


def _ended_by(
    path: Path,
    module: ModuleType,
    seconds: float,
    told: Sequence[BaseException],
    usage: Sequence[str],
) -> str | None:
    """Execute the code of a main; say in one line what ended it early, None if nothing did."""
    try:
        with process_kept(), _within(seconds):
            code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
            exec(code, vars(module))
    except TimeUpError:
        return f"{path.name} was ended after {seconds:.0f} s"
    except SystemExit as error:
        if error.code in (None, 0):
            return None
        why = f": {usage[-1]}" if usage else ""
        return f"{path.name} exited with {error.code!r}{why}"
    except BaseException as error:
        all_errors = error.errors if isinstance(error, TestsFailedError) else [error]
        untold = [one for one in all_errors if not any(one is other for other in told)]
        return "; ".join(with_version(describe(one, path)) for one in untold) or None
    return None


def _main_module(path: Path) -> ModuleType:
    """Return an empty ``__main__`` that finds its neighbours, also by relative imports."""
    spec = importlib.util.spec_from_file_location("__main__", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    vars(module)["__file__"] = str(path)
    folders = folders_of(path)
    sys.path.insert(0, str(path.parent))
    if folders:
        sys.path.insert(1, str(folders[0].parent))
        module.__package__ = package_of(folders)
    return module


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def up(_: int, __: FrameType | None) -> None:
        raise TimeUpError

    before = signal.signal(signal.SIGALRM, up)
    # again and again: user code may swallow one of them
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _remember_usage_errors(lines: list[str]) -> None:
    """Keep what argparse complains about: it exits with a bare 2."""
    parser_class: Any = argparse.ArgumentParser
    error = parser_class.error

    def remembered(parser: argparse.ArgumentParser, message: str) -> Any:
        lines.append(one_line(message))
        return error(parser, message)

    parser_class.error = remembered


# ---- files of tests ----------------------------------------------------------------------


def _run_tests_directly() -> None:
    """Let ``pytest.main()``, which ``tilelang.testing.main()`` calls, call the tests of the file.

    TileLang's tests skip where there is no device; here they are to run.
    """
    if importlib.util.find_spec("pytest") is None:
        sys.modules["pytest"] = MissingModule("pytest")
    pytest: Any = importlib.import_module("pytest")
    pytest.main = _call_tests


def _call_tests(*_: Any, **__: Any) -> int:
    failed: list[BaseException] = []
    for name, test in list(vars(sys.modules["__main__"]).items()):
        if not name.startswith("test") or not callable(test):
            continue
        try:
            test(**_first_parameters(test))
        except Exception as error:
            failed.append(error)
        except BaseException as error:
            if type(error).__name__ != "Skipped":  # pytest.skip()
                raise
    if failed:
        raise TestsFailedError(failed)
    return 0


def _first_parameters(test: Any) -> dict[str, Any]:
    """Return the first set of values of a parametrized test."""
    found: dict[str, Any] = {}
    for mark in getattr(test, "pytestmark", ()):
        if mark.name != "parametrize":
            continue
        names, values = mark.args[0], list(mark.args[1])
        names = names.replace(",", " ").split() if isinstance(names, str) else list(names)
        first = getattr(values[0], "values", values[0])
        pairs = [first] if len(names) == 1 and not hasattr(values[0], "values") else first
        found |= dict(zip(names, pairs, strict=False))
    return found
