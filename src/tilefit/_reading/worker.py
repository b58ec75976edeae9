"""The child process that runs user code: imports a toolchain once, forks once per file.

``python -m tilefit._reading.worker REQUEST_FD ANSWER_FD`` reads JSON lines from one pipe and
answers on another, never on standard output, which belongs to the user's code. Every request has
an ``id``; its answer carries the same one, behind the ``key`` of the child, which tells our answers
from what user code writes there::

    {"op": "load", "file": PATH, "device"}  -> {"kernels": [...], "version": ...}
    {"op": "run", "file": PATH, "device", "deadline"}
        -> as "load", and {"unbuilt": [...], "ended": ..., "stubbed": [...], "notes": [...]}
    {"op": "read", "request": Request} -> {"kernels": [Kernel...]}
    {"op": "done"}                          ends the fork that serves the file

Every answer about a file says what it ``rests`` on (see `_reading.rests`). A failure is
``{"error": KIND, "message": LINE, "cause": CAUSE}``; a fork that ends without answering is
reported by its parent as ``{"id": null, "error": "died", ...}``.

This guards against accidents (a crash, a hang, a flood of output). It is no sandbox.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import resource
import signal
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from tilefit._errors import InputError, KernelError, RefusedError, TilefitError, ToolchainError
from tilefit._frontends.loaded import loaded_files
from tilefit._frontends.protocol import Compiling, Source
from tilefit._frontends.registry import load
from tilefit._frontends.user_code import describe
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.request import Request
from tilefit._reading.reads import Reads
from tilefit._reading.said import Said
from tilefit._reading.sought import INSTALLED, Sought

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def main(request_fd: int, answer_fd: int, where: str, memory_bytes: int) -> None:
    """Serve requests until the pipe closes."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # daemons that user code leaves behind become our children, so that they can be ended
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for fd in (request_fd, answer_fd):
        os.set_inheritable(fd, False)
    with contextlib.suppress(FileNotFoundError):  # a folder that is gone has no modules
        sys.path.append(os.getcwd())  # noqa: PTH109  # behind all that is installed
    requests = os.fdopen(request_fd, "rb", buffering=0)
    version: str | None = None
    prepared = False
    started_with = dict(os.environ)
    while line := requests.readline():
        request = json.loads(line)
        if request["op"] == "done":  # its fork has died already
            _answer(answer_fd, request)
            continue
        try:
            frontend = cast(Compiling, load(where))
            version = version or frontend.version()
            sandboxed = request["op"] == "run" or request.get("device") is not None
            if sandboxed and not prepared:
                frontend.prepare_run()
                prepared = True
        except TilefitError as error:
            _answer(answer_fd, request, error=Said.TOOLCHAIN, message=str(error))
            continue
        with mmap.mmap(-1, 1) as orderly:  # shared; no exit code is one that user code cannot give
            pid = os.fork()
            if pid == 0:
                _serve_file(
                    request, requests, answer_fd, frontend, memory_bytes, orderly, started_with
                )
            _, status = os.waitpid(pid, 0)
            if not orderly[0]:
                ended = {**request, "id": None}
                _answer(answer_fd, ended, error=Said.DIED, message=_how_it_ended(status))
        _end_orphans()


def _serve_file(
    request: dict[str, Any],
    requests: BinaryIO,
    answer_fd: int,
    frontend: Compiling,
    memory_bytes: int,
    orderly: mmap.mmap,
    started_with: Mapping[str, str],
) -> NoReturn:
    """In the fork: execute the file and answer for it; never returns.

    Args:
        request: The first; it names the file.
        requests: Where the others come from.
        answer_fd: Where answers go.
        frontend: What reads the file.
        memory_bytes: How much more than now one allocation may take.
        orderly: Set when the fork ends because it was told to.
        started_with: The environment when the worker started.
    """
    served_by = os.getpid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)
    _limit_memory(memory_bytes)
    source: Source | None = None
    path = Path(request["file"]).absolute()  # user code may change the folder
    sought, reads = Sought(), Reads(started_with)
    sys.meta_path.insert(0, sought)
    reads.begin()

    def answer(**content: Any) -> None:
        if os.getpid() != served_by:  # user code forked; the copy has no say
            os._exit(0)
        with reads.paused():
            rests = reads.rests([*loaded_files(path), *_package_folders()], sought.absent())
        _answer(answer_fd, request, rests=rests, **content)

    while True:
        try:
            if request["op"] == "done":
                _answer(answer_fd, request)
                _leave(orderly)
            if source is None:
                more: dict[str, Any] = {}
                if request["op"] == "run":
                    left = max(0.0, request["deadline"] - time.monotonic())
                    run = frontend.run(path, request["device"], left)
                    more["unbuilt"] = [_plain(one) for one in run.unbuilt]
                    more |= {"ended": run.ended, "stubbed": run.stubbed, "notes": run.notes}
                    more["compiled_nothing"] = run.compiled_nothing
                    source = run
                else:
                    source = frontend.load(path, request.get("device"))
                found = [_plain(k) for k in source.kernels()]
                answer(kernels=found, version=frontend.version(), **more)
            else:
                kernels: tuple[object, ...] = source.read(Request.from_dict(request["request"]))
                answer(kernels=[_checked(one).to_dict() for one in kernels])
        except RefusedError as error:
            answer(error=Said.REFUSED, message=str(error), cause=error.cause)
        except InputError as error:
            answer(error=Said.INPUT, message=str(error), cause=error.cause)
        except (KernelError, ToolchainError) as error:
            answer(error=Said.KERNEL, message=str(error), cause=error.cause)
        except BaseException as error:  # user code may raise anything
            answer(error=Said.KERNEL, message=f"reading the kernel failed: {describe(error, path)}")
        line = requests.readline()
        if not line:
            _leave(orderly)
        request = json.loads(line)


def _checked(kernel: object) -> Kernel:
    """Return what a frontend read, which may be anybody's."""
    if not isinstance(kernel, Kernel):
        kind = type(kernel).__name__
        raise KernelError(f"the frontend gave a {kind}, where a Kernel is right")
    return kernel


def _package_folders() -> list[str]:
    """Return the folders of installed packages, and their ``.pth`` files.

    An answer may change when a package comes or goes.
    """
    own = (sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    paths = (*own, *(path for path in sys.path if type(path) is str and path.endswith(INSTALLED)))
    folders = dict.fromkeys(path for path in paths if path and Path(path).is_dir())
    # what they add to the path, and run at every start
    added = [str(one) for folder in folders for one in sorted(Path(folder).glob("*.pth"))]
    return [*folders, *added]


def _leave(orderly: mmap.mmap) -> NoReturn:
    """End the fork at once: the user's exit handlers are not ours to run."""
    orderly[0] = 1
    os._exit(0)


def _answer(answer_fd: int, request: Mapping[str, Any], **content: Any) -> None:
    # a leading newline ends whatever a dead fork left half written
    data = f"\n{request['key']} {json.dumps({'id': request['id'], **content})}\n".encode()
    while data:
        data = data[os.write(answer_fd, data) :]


def _plain(value: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(value)


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"ended the process (exit code {os.WEXITSTATUS(status)})"


def _limit_memory(memory_bytes: int) -> None:
    """Make one huge allocation fail at once; the parent watches the sum over all processes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    now = pages * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now + memory_bytes
    resource.setrlimit(
        resource.RLIMIT_AS,
        (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
    )


def _end_orphans() -> None:
    """Kill what the file left running; as a subreaper we are its parent now."""
    for _ in range(100):
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        pids = [int(p) for p in children.read_text().split()] if children.exists() else []
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
