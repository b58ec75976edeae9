"""What was read before: SQLite in the user's cache folder, written by the parent process only.

A row belongs to a question: file, kernel, parameters, target, interpreter, current folder, compiler
options and the environment variables that steer the toolchain. It holds the answer and what the
answer rests on: the hash of each module that the child loaded outside installed packages and each
file that its code opened, the metadata of the toolchain, the names in the folders that were listed
and in those of installed packages, size and time of every file of a package that was loaded, the
environment variables that were read, and what was looked for and not there. A row counts only while
all of that is the same; so an edit of a helper two folders away, a helper that is new, another
version of the toolchain or another value of a variable misses. What was saved while it was read is
not kept at all, and neither is what rests on another program or the network.

As in git's index, a file whose size, times and inode are those of its hashing is not read again,
unless it was so new then that a later edit could have left the same times.
"""

from __future__ import annotations

import _thread
import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tilefit._reading.environment import value_of
from tilefit._reading.question import digest

TYPE_CHECKING = False  # typing and pathlib cost 5 ms, at a start of which each is a good part
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_SCHEMA = 5
MOST_BYTES = 256 * 2**20
_WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.005
_LOOK_AGAIN_SECONDS = 0.5  # many answers of one run rest on the same installed files
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_RACY_NS = 2 * 10**9  # the coarsest clock of a file system in use (FAT: 2 s)
CTIME = 2  # of a stamp


class Store:
    """The cache of readings; every trouble with its file makes it empty, never an error."""

    def __init__(self, folder: Path | None = None, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = str(folder or default_folder())
        self._file = os.path.join(self._folder, f"readings-{_SCHEMA}.sqlite")  # noqa: PTH118
        self.most_bytes = most_bytes
        self.used: set[str] = set()  # files that answers of this run rest on
        self.absent: set[str] = set()  # files that they rest on not being there
        self.present: set[str] = set()  # folders that they rest on being there
        self.environment: dict[str, str | None] = {}  # hashes of variables that they rest on
        self.installed: set[str] = set()  # files of installed packages that they rest on
        self._lists: dict[str, list[str]] = {}  # of installed files, by their hash
        self._stamps: dict[str, tuple[float, str]] = {}  # of such a list, and when it was taken
        self.complete = True  # False once there was an outcome that is not kept
        self._lock = _thread.allocate_lock()  # importing threading costs 1 ms
        self._connection = self._open()

    @property
    def path(self) -> Path:
        """The file."""
        from pathlib import Path

        return Path(self._file)

    def get(self, question: str) -> Any | None:
        """Return the answer to a question; None if there is none that still holds."""
        if self._connection is None:
            return None
        with suppress(ValueError, KeyError, TypeError), self._healed():
            with self._lock:
                row = self._connection.execute(
                    "SELECT depends, answer, digest FROM reading WHERE question = ?", (question,)
                ).fetchone()
            if row is None or digest(row[0] + row[1]) != row[2]:
                return None
            depends, absent, present, environment, installed = json.loads(row[0])
            if (
                all(_holds(path, known) for path, known in depends.items())
                and not any(os.path.lexists(path) for path in absent)
                and all(os.path.isdir(path) for path in present)  # noqa: PTH112
                and all(_variable(name) == known for name, known in environment.items())
                and self._stamped(installed[0]) == installed[1]
            ):
                self.used.update(depends)
                self.absent.update(absent)
                self.present.update(present)
                self.environment.update(environment)
                self.installed.update(self._lists[installed[0]])
                return json.loads(row[1])
        return None

    def put(
        self,
        question: str,
        depends_on: Sequence[str],
        answer: Any,
        *,
        absent: Sequence[str] = (),
        present: Sequence[str] = (),
        environment: Mapping[str, str | None] | None = None,
        installed: Sequence[str] = (),
        since: int | None = None,
    ) -> None:
        """Keep an answer together with what it depends on, unless that changed meanwhile.

        Args:
            question: See `_reading.question.question_of`.
            depends_on: Files.
            answer: What JSON can hold.
            absent: Files whose coming would change the answer.
            present: Folders whose going would.
            environment: Variables with the values that it was made with; None for one not set.
            installed: Files of installed packages: their sizes and times are looked at alone.
            since: When the first of the files was read, as `clock` told it.
        """
        if self._connection is None:
            return
        known = {path: _known(path) for path in depends_on}
        if any(
            value is None or (since is not None and value[1][CTIME] >= since)
            for value in known.values()
        ) or any(os.path.lexists(path) for path in absent):
            self.complete = False
            return
        hashes = {name: _hashed(value) for name, value in (environment or {}).items()}
        if any(_variable(name) != value for name, value in hashes.items()):
            self.complete = False  # user code set it itself, or looked at its own copy
            return
        self.used.update(known)
        self.absent.update(absent)
        self.present.update(present)
        self.environment.update(hashes)
        self.installed.update(installed)
        listed = self._listed(installed)
        parts = [known, list(absent), list(present), hashes, [listed, self._stamped(listed)]]
        depends, text = json.dumps(parts), json.dumps(answer)
        row = (question, depends, text, digest(depends + text), time.time(), len(depends + text))
        with self._healed(), self._lock:
            with self._connection:
                self._connection.execute("INSERT OR REPLACE INTO reading VALUES (?,?,?,?,?,?)", row)
            self._prune()

    # ---- installed packages --------------------------------------------------------------------

    def _listed(self, files: Sequence[str]) -> str:
        """Keep a list of files once for all answers that rest on it; return its hash."""
        text = json.dumps(sorted(files))
        name = digest(text)
        if name not in self._lists and self._connection is not None:
            with self._healed(), self._lock, self._connection:
                self._connection.execute("INSERT OR IGNORE INTO listed VALUES (?,?)", (name, text))
        self._lists[name] = sorted(files)
        return name

    def _stamped(self, name: str) -> str:
        """Return a hash of the sizes and times of the files of a list; empty if it is lost."""
        if name not in self._lists and self._connection is not None:
            with self._lock:
                row = self._connection.execute(
                    "SELECT paths FROM listed WHERE name = ?", (name,)
                ).fetchone()
            if row is None or digest(row[0]) != name:
                return ""
            self._lists[name] = json.loads(row[0])
        taken, found = self._stamps.get(name, (-_LOOK_AGAIN_SECONDS, ""))
        if time.monotonic() - taken < _LOOK_AGAIN_SECONDS:
            return found
        found = digest(repr([(stamp_of(path) or ())[:2] for path in self._lists[name]]))
        self._stamps[name] = time.monotonic(), found
        return found

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()

    def __del__(self) -> None:
        # Python 3.13 warns of a database that nobody closed
        if getattr(self, "_connection", None) is not None:
            self.close()

    def _open(self) -> sqlite3.Connection | None:
        for _ in range(2):
            connection = None
            try:
                os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
                connection = sqlite3.connect(
                    self._file, timeout=_WAIT_SECONDS, check_same_thread=False
                )
                self._into_wal(connection)
                connection.execute("PRAGMA synchronous=NORMAL")
                with connection:
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS reading (question TEXT PRIMARY KEY, "
                        "depends TEXT, answer TEXT, digest TEXT, kept REAL, size INTEGER)"
                    )
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS listed (name TEXT PRIMARY KEY, paths TEXT)"
                    )
                return connection
            except (sqlite3.OperationalError, OSError):
                if connection is not None:
                    connection.close()
                return None  # locked for long, or a folder that cannot be written
            except sqlite3.DatabaseError:
                if connection is not None:
                    connection.close()
                self._remove()  # not a database any more: start over
        return None

    @staticmethod
    def _into_wal(connection: sqlite3.Connection) -> None:
        """Switch to WAL, which several may do at once on a fresh file.

        SQLite says "database is locked" at once then: its own timeout does not hold for this.
        """
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _LOCKED or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def _healed(self) -> Iterator[None]:
        """Bear every trouble with the file; one that is damaged inside is begun anew."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError):
            return  # locked, or a full disk; or closed
        except sqlite3.DatabaseError:
            with self._lock:
                self.close()
                self._remove()
                self._connection = self._open()

    def _remove(self) -> None:
        for name in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self._file}{name}")  # noqa: PTH108

    def _prune(self) -> None:
        """Drop the oldest rows while there are too many bytes."""
        assert self._connection is not None
        (total,) = self._connection.execute("SELECT COALESCE(SUM(size), 0) FROM reading").fetchone()
        if total <= self.most_bytes:
            return
        with self._connection:
            rows = self._connection.execute("SELECT question, size FROM reading ORDER BY kept")
            for question, size in rows.fetchall():
                if total <= self.most_bytes // 2:
                    break
                self._connection.execute("DELETE FROM reading WHERE question = ?", (question,))
                total -= size


def _hashed(value: str | None) -> str | None:
    """Return the hash of a variable: its value may be a secret."""
    return None if value is None else digest(value)


def _variable(name: str) -> str | None:
    return _hashed(value_of(name, os.environ))


def stamp_of(path: str) -> tuple[int, ...] | None:
    """Return what changes with a file: its size, times and inode; None if it is gone."""
    try:
        found = os.stat(path)  # noqa: PTH116  # a Path costs more than the call
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _hash(path: str) -> str | None:
    """Return the hash of a file's content; of a folder, the time at which its names changed."""
    try:
        if os.path.isdir(path):  # noqa: PTH112
            return str(os.stat(path).st_mtime_ns)  # noqa: PTH116
        with open(path, "rb") as file:  # noqa: PTH123
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _known(path: str) -> tuple[str, tuple[int, ...], bool] | None:
    """Return hash, stamp, and whether an edit to come could leave the same stamp."""
    stamp = stamp_of(path)
    digest = _hash(path)
    if stamp is None or digest is None or stamp_of(path) != stamp:
        return None
    return digest, stamp, time.time_ns() - max(stamp[1], stamp[2]) < _RACY_NS


def _holds(path: str, known: Sequence[Any]) -> bool:
    """Say whether a file is what it was when `_known` looked at it."""
    digest, stamp, racy = known
    found = stamp_of(path)
    if found is None:
        return False
    return (list(found) == stamp and not racy) or _hash(path) == digest


def clock() -> int:
    """Return the time, in ns, by the clock that file systems stamp files with."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME))


def default_folder() -> str:
    """Return the user's cache folder for tilefit."""
    system: str = sys.platform
    if system == "linux":  # as platformdirs says, whose import takes longer than the answer
        given = os.environ.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(given or os.path.expanduser("~/.cache"), "tilefit")  # noqa: PTH111, PTH118
    from platformdirs import user_cache_dir

    return user_cache_dir("tilefit")
