"""What user code reads besides the modules that it imports, in the process that executes it.

An answer holds for as long as that is the same: files, listings of folders, what is there and what
is not, variables of the environment. What no record can hold, such as another program's output,
makes an answer that is not kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tilefit._frontends.loaded import files_of_modules, is_installed, not_the_user
from tilefit._reading.environment import ALL, OUR_OWN, value_of

_ELSEWHERE = ("/proc/", "/sys/", "/dev/")  # the machine's own: no file of anybody
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.bind")
_FOLDERS = ("os.listdir", "os.scandir")
_LOADED = ("ctypes.dlopen", "sqlite3.connect")  # they open files without saying so
_MADE = ("os.mkdir", "os.rename", "os.symlink", "os.link")


class Reads:
    """Notes what is read from now on; there is no end to it but that of the process.

    Attributes:
        files: Files that were opened to be read, or asked for and there.
        folders: Folders that were listed.
        present: Folders that were asked for and there.
        absent: What was asked for and not there.
        environment: Variables that were read, with their values; None for one that is not set.
        unkept: What else the code did that no record can hold; None if nothing.
    """

    def __init__(self, started_with: Mapping[str, str]) -> None:
        """Prepare to note.

        Args:
            started_with: The environment of the process when it started.
        """
        self._started_with = dict(started_with)
        self.files: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.present: dict[str, None] = {}
        self.absent: dict[str, None] = {}
        self.environment: dict[str, str | None] = {}
        self.unkept: str | None = None
        self._own: set[str] = set()  # what this process wrote itself
        self._asked: set[str] = set()
        self._noting = True
        self._stat = os.stat

    def begin(self) -> None:
        """Note from now on."""
        sys.addaudithook(self._event)
        for name in ("stat", "lstat", "access"):
            original = getattr(os, name)
            asking = self._asking(original)
            setattr(os, name, asking)
            for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
                if original in able:  # what others ask before they call it in that way
                    able.add(asking)
        self._watch_environment()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Note nothing meanwhile: it is not user code that reads."""
        self._noting = False
        try:
            yield
        finally:
            self._noting = True

    # ---- events ------------------------------------------------------------------------------

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._noting:
            return
        try:
            if (event == "open" or event in _FOLDERS) and _by_import(sys._getframe(1)):
                return
            if event == "open":
                path, _, flags = arguments
                self._opened(path, bool(flags & os.O_ACCMODE))
            elif event in _FOLDERS:
                path = _absolute("." if arguments[0] is None else arguments[0])
                if path is not None:
                    (self.folders if self._is_there(path) else self.absent)[path] = None
            elif event in _LOADED:
                self._opened(arguments[0], False)
            elif event in _MADE:
                self._own.update(path for one in arguments[:2] if (path := _absolute(one)))
            elif event in _PROGRAMS:
                self.unkept = self.unkept or "it runs another program"
            elif event in _NETWORK:
                self.unkept = self.unkept or "it uses the network"
        except Exception:  # user code may hand anything over; it gets its own error
            return

    def _opened(self, given: Any, writes: bool) -> None:
        path = _absolute(given)
        if path is None:
            return
        if writes:
            self._own.add(path)
        elif self._is_there(path):
            self.files[path] = None
        else:
            self.absent[path] = None

    def _is_there(self, path: str) -> bool:
        try:
            self._stat(path)
        except OSError:
            return False
        return True

    # ---- what is asked for ---------------------------------------------------------------------

    def _asking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def asking(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, (str, bytes, os.PathLike)) and not kwargs.get("dir_fd"):
                self._note_asked(path)
            return function(path, *args, **kwargs)

        return asking

    def _note_asked(self, given: Any) -> None:
        path = None
        try:
            path = _absolute(given) if self._noting else None
            if path is None or path in self._asked:
                return
            self._asked.add(path)
            mode = self._stat(path).st_mode
        except OSError:
            self.absent[path or ""] = None
        except Exception:
            return
        else:
            (self.present if mode & 0o170000 == 0o040000 else self.files)[path] = None

    # ---- the environment -----------------------------------------------------------------------

    def _watch_environment(self) -> None:
        """Note each variable that is read through ``os.environ``, and that all of them are."""
        kind: Any = type(os.environ)
        get, every, reads = kind.__getitem__, kind.__iter__, self

        def getitem(environ: Any, name: Any) -> Any:
            reads._note_variable(name)
            return get(environ, name)

        def iterate(environ: Any) -> Any:
            reads._note_variable(ALL)
            return every(environ)

        kind.__getitem__, kind.__iter__ = getitem, iterate

    def _note_variable(self, name: Any) -> None:
        text = os.fsdecode(name) if self._noting and isinstance(name, (str, bytes)) else None
        if text is not None and not text.startswith(OUR_OWN) and text not in self.environment:
            # what the process set itself hangs on what it read before
            self.environment[text] = value_of(text, self._started_with)

    def rests(self, files: Iterable[str], absent: Iterable[str]) -> dict[str, Any]:
        """Return all that an answer rests on, ready for JSON; see `_reading.rests.Rests`.

        Args:
            files: What else it rests on: modules, and the folders of installed packages.
            absent: Where modules were looked for.
        """
        folders = not_the_user()
        installed: list[str] = []
        users: list[str] = []
        for path in (*self.files, *files_of_modules()):
            (installed if is_installed(path, folders) else users).append(path)
        users = [path for path in users if path in self.files]
        return {
            "files": sorted({*files, *self._not_own(users), *self._not_own(self.folders)}),
            "absent": sorted({*absent, *self._not_own(self.absent)}),
            "present": sorted(self._not_own(self.present)),
            "environment": self.environment,
            "installed": sorted(set(installed)),
            "unkept": self.unkept,
        }

    def _not_own(self, paths: Iterable[str]) -> list[str]:
        """Return paths without those that this process made, and what lies in them."""
        return [path for path in paths if path not in self._own and not self._is_in_own(path)]

    def _is_in_own(self, path: str) -> bool:
        folder = os.path.dirname(path)  # noqa: PTH120
        while len(folder) > 1:
            if folder in self._own:
                return True
            folder = os.path.dirname(folder)  # noqa: PTH120
        return False


def _by_import(frame: FrameType) -> bool:
    """Say whether an import reads here: what is imported is known (`sought`, `loaded_files`)."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _absolute(given: Any) -> str | None:
    """Return a path as text from the root; None for a descriptor, or what is none of the user's."""
    if isinstance(given, int):
        return None
    path = os.path.abspath(os.fsdecode(given))  # noqa: PTH100  # user code may change the folder
    if path.startswith(_ELSEWHERE) or path.endswith((".pyc", f"{os.sep}__pycache__")):
        return None
    return path
