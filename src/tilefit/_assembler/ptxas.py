"""What nvcc, ptxas and nvdisasm print, read into values.

The texts are those of CUDA 13.0: ``ptxas -v`` (``nvcc -Xptxas -v``) and ``nvdisasm -c``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_REMARK = re.compile(r"^ptxas (?:warning\s*:|info\s*:\s*(?=\(C\d+\)))\s*(.+)$")

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^\s,]+)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
# HMMA, IMMA, DMMA, QMMA, OMMA of a warp, HGMMA, IGMMA, QGMMA of a warp group, UTCHMMA, UTCQMMA
# and their like of the tensor memory: the name always ends so, and no other instruction's does.
_MATRIX = re.compile(r"^[A-Z]+MMA$")
_TRAP = "BPT"  # BPT.TRAP; nothing else that compilers write is a break point

_ERROR = re.compile(
    r"^(?P<where>(?:(?!warning)[^'\"])*?)\s*"
    r"\b(?:fatal error|catastrophic error|internal error|error|fatal)\s*:\s*(?P<what>\S.*)$"
)
_PLACE = re.compile(r"^(?P<file>[^\s:(]+)[:(](?P<line>\d+)")
_ARCHITECTURE = re.compile(r"Unsupported gpu architecture")
_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionUse:
    """What one kernel function needs, as the assembler found it.

    Attributes:
        name: Its symbol.
        registers_per_thread: Registers of each thread at launch; roles may move them later.
        spill_store_bytes: Bytes that one thread writes to spilled registers' places.
        spill_load_bytes: Bytes that it reads back.
        stack_bytes: Stack of one thread, called functions included.
        static_bytes: Static shared memory, without the KiB that the system reserves.
        barriers: Named barriers (of 16).
        matrix_instructions: Matrix instructions in its machine code; None if it was not read.
        matrix_kinds: Their names without suffixes, sorted (``HGMMA``).
        traps: Traps in its machine code; None if it was not read.
    """

    name: str
    registers_per_thread: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_bytes: int
    barriers: int
    matrix_instructions: int | None = None
    matrix_kinds: tuple[str, ...] = ()
    traps: int | None = None


def function_uses(
    verbose: str, matrix: Mapping[str, Counter[str]] | None = None
) -> tuple[FunctionUse, ...]:
    """Read the output of ``ptxas -v``: its kernel functions, sorted by name.

    Args:
        verbose: The text.
        matrix: What `matrix_instructions` made of the machine code; None if it was not read.
    """
    used: dict[str, str] = {}
    stacks: dict[str, tuple[int, int, int]] = {}
    entry = described = ""
    for line in verbose.splitlines():
        if found := _ENTRY.search(line):
            entry = found[1]
        elif found := _PROPERTIES.search(line):
            described = found[1]
        elif found := _STACK.search(line):
            stacks[described] = (int(found[1]), int(found[2]), int(found[3]))
        elif entry and _USED.search(line):
            used[entry] = line
    uses = []
    for name, line in sorted(used.items()):
        frame, stores, loads = stacks.get(name, (0, 0, 0))
        counts = Counter[str]() if matrix is None else matrix.get(name, Counter())
        uses.append(
            FunctionUse(
                name=name,
                registers_per_thread=_number(line, r"Used (\d+) registers"),
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                stack_bytes=max(frame, _number(line, r"(\d+) bytes cumulative stack size")),
                static_bytes=_number(line, r"(\d+) bytes smem"),
                barriers=_number(line, r"used (\d+) barriers"),
                matrix_instructions=None if matrix is None else counts.total() - counts[_TRAP],
                matrix_kinds=tuple(sorted(kind for kind in counts if kind != _TRAP)),
                traps=None if matrix is None else counts[_TRAP],
            )
        )
    return tuple(uses)


def matrix_instructions(sass: str) -> dict[str, Counter[str]]:
    """Count matrix instructions and traps in what ``nvdisasm -c`` prints, by function and name."""
    counts: dict[str, Counter[str]] = {}
    current = Counter[str]()
    for line in sass.splitlines():
        if found := _SECTION.match(line):
            current = counts.setdefault(found[1], Counter())
        elif (found := _INSTRUCTION.match(line)) and (found[1] == _TRAP or _MATRIX.match(found[1])):
            current[found[1]] += 1
    return counts


def remarks(verbose: str) -> tuple[str, ...]:
    """Return the assembler's warnings and performance remarks, each once, in order."""
    found = (_REMARK.match(line.strip()) for line in verbose.splitlines())
    return tuple(dict.fromkeys(" ".join(match[1].split()) for match in found if match))


def first_error(output: str, target: str, version: str) -> str | None:
    """Return the first error of nvcc or a tool that it called, in one line; None without one.

    Args:
        output: All that nvcc printed.
        target: What it was asked for (``sm_70``).
        version: Its version, for the message on a target that it does not know.
    """
    for line in output.splitlines():
        found = _ERROR.match(line)
        if not found:
            continue
        if _ARCHITECTURE.match(found["what"]):
            return f"nvcc {version} has no {target}"
        where = found["where"].strip()
        tool = where.split()[0] if where else ""
        if place := _PLACE.match(where):
            tool = f"{place['file'].rpartition('/')[2]} line {place['line']}"
        reason = " ".join(f"{tool.rstrip(':')}: {found['what']}".lstrip(": ").split())
        if len(reason) > _REASON_LENGTH:
            reason = reason[: _REASON_LENGTH - 3] + "..."
        return reason
    return None


def lacks_target(output: str) -> bool:
    """Say whether nvcc refused because it does not know the target."""
    return _ARCHITECTURE.search(output) is not None


def _number(line: str, pattern: str) -> int:
    found = re.search(pattern, line)
    return int(found[1]) if found else 0
