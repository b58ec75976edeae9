"""Read the addresses that an Ascend kernel uses from the source that TileLang generates for it.

Nothing here asks the compiler's own tables or tilefit. A memory starts at address 0 there
(``__cbuf__ uint8_t *buf_dyn_l1 = (__cbuf__ uint8_t *)0``); every use of such a pointer adds an
offset, an expression of loop variables, and the call that it stands in says how many bytes it
moves. The highest end over all uses is what the chip must have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MEMORIES = {"__ubuf__": "ub", "__cbuf__": "l1", "__ca__": "l0a", "__cb__": "l0b", "__cc__": "l0c"}
# bits of the element types of the generated code; a vector's name ends in its lanes
BITS = {
    "uint8_t": 8, "int8_t": 8, "bool": 8, "fp8_e4_t": 8, "fp8_e8m0_t": 8, "float8_e4m3_t": 8,
    "tl::float_e4m3_t": 8, "float4_e2m1x2_t": 8, "fp8_e4_2_t": 16, "fp8_e4_4_t": 32,
    "half": 16, "bfloat16_t": 16, "int16_t": 16, "uint16_t": 16, "half2": 32, "uint1": 32,
    "float": 32, "int32_t": 32, "uint32_t": 32, "float2": 64, "uint2": 64, "int2": 64,
    "float4": 128, "uint4": 128, "void": 8,
}  # fmt: skip
FRACTAL_BYTES = 512  # 16 rows of 32 B
BLOCK_BYTES = 32


@dataclass(frozen=True)
class Use:
    """One use of a memory: the lowest first byte, and the highest end."""

    memory: str
    start: int
    end: int


def uses(source: str, function: str) -> list[Use]:
    """Return every use of on-chip memory of one device function and its vector functions."""
    found: list[Use] = []
    whole = {name: (head, body) for name, head, body in _functions(source)}
    head, body = whole[function]
    ranges = _ranges(body)
    found += _uses_in(head, body, ranges)
    for name, arguments in _vector_calls(body):
        inner_head, inner_body = whole[name]
        names = [re.findall(r"\w+", one)[-1] for one in _split(inner_head)]
        given = dict(zip(names, arguments, strict=True))
        passed = {n: _interval(value, ranges) for n, value in given.items() if n != value}
        passed |= {n: ranges[value] for n, value in given.items() if value in ranges}
        found += _uses_in(inner_head, inner_body, passed | _ranges(inner_body))
    return found


def totals(source: str, function: str) -> dict[str, int]:
    """Return the highest end of each memory that a device function uses, by its name."""
    found: dict[str, int] = {}
    for use in uses(source, function):
        found[use.memory] = max(found.get(use.memory, 0), use.end)
    return found


# ---- functions, loops, calls -----------------------------------------------------------------


def _functions(source: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, parameters and body of each function."""
    for match in re.finditer(r"(?:inline|__cube__|__vector__|\)) void (\w+)\(", source):
        parameters, end = _balanced(source, match.end() - 1)
        body, _ = _balanced(source, source.index("{", end))
        bound = re.search(
            r"__launch_bounds__\((\d+)\)",
            source[source.rfind("\n", 0, match.start()) : match.start()],
        )
        yield match[1], parameters, (f"BOUND {bound[1]};" if bound else "") + body


def _ranges(body: str) -> dict[str, tuple[int, int]]:
    found = {"block_idx": (0, 0), "sid": (0, 1)}
    for name, start, end in re.findall(
        r"for \(int32_t (\w+) = (\d+); \w+ < (\d+); \+\+\w+\)", body
    ):
        found[name] = (int(start), int(end) - 1)
    for name in re.findall(r"int32_t (\w+) = 0;\n", body):
        found[name] = (0, 1 << 30)  # counts the turns of a buffer
    bound = re.match(r"BOUND (\d+);", body)
    if bound:
        found["tx"] = (0, int(bound[1]) - 1)
    return found


def _vector_calls(body: str) -> Iterator[tuple[str, list[str]]]:
    for match in re.finditer(r"asc_vf_call<(\w+)>\(", body):
        arguments, _ = _balanced(body, match.end() - 1)
        yield match[1], _split(arguments)[1:]  # the first is the threads
    for match in re.finditer(r"\b(\w+_simd_vf_\d+)\(", body):
        arguments, _ = _balanced(body, match.end() - 1)
        yield match[1], _split(arguments)


def _balanced(text: str, at: int) -> tuple[str, int]:
    """Return what stands between the bracket at a place and its partner, and where that is."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth = 0
    for end in range(at, len(text)):
        if text[end] in pairs:
            depth += 1
        elif text[end] in pairs.values():
            depth -= 1
            if depth == 0:
                return text[at + 1 : end], end
    raise ValueError(f"no end of {text[at : at + 40]!r}")


def _split(arguments: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    found, depth, last = [], 0, 0
    for at, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append(arguments[last:at].strip())
            last = at + 1
    return [*found, arguments[last:].strip()] if arguments.strip() else []


# ---- one use of a pointer --------------------------------------------------------------------


def _uses_in(head: str, body: str, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Use]:
    pointers = {}
    for qualifier, kind, name in re.findall(r"(__\w+__) ([\w:]+) ?\* ?(\w+)", head + "; " + body):
        if qualifier in MEMORIES:
            pointers[name] = (MEMORIES[qualifier], kind)
    calls = list(_calls(body))
    for name, (memory, declared) in pointers.items():
        for match in re.finditer(rf"\b{name}\b", body):
            cast = re.search(r"\(__\w+__ ([\w:]+) ?\*\)$", body[: match.start()])
            before = body[: match.start()]
            if re.search(r"__\w+__ [\w:]+ \*$", before) or re.search(r"_vf_\d+>?\([^;]*$", before):
                continue  # its declaration, or handed on to a vector function
            kind = cast[1] if cast else declared
            within = _guarded(body, match.start(), ranges)
            low, high = _offset(body, match.end(), within)
            size = BITS[kind] // 8
            vector = re.search(r"\*\(__\w+__ (\w+)\*\)\(+(?:\(__\w+__ [\w:]+ ?\*\))?$", before)
            length = BITS[vector[1]] // 8 if vector else size
            for call, arguments, positions in calls:
                inside = next(
                    (n for n, (s, e) in enumerate(positions) if s <= match.start() < e), None
                )
                if inside is not None:
                    length = _length(call, inside, arguments, size, body, match.start()) or length
            yield Use(memory, low * size, high * size + length)
    for call, _, _ in calls:
        yield from _hidden(call)


def _guarded(
    body: str, place: int, ranges: Mapping[str, tuple[int, int]]
) -> Mapping[str, tuple[int, int]]:
    """Return the ranges where a condition lets only some threads come to a place."""
    for match in re.finditer(r"if \(\(\(int32_t\)threadIdx\.x\) < (\d+)\) \{", body[:place]):
        _, end = _balanced(body, match.end() - 1)
        if place < end:
            return {**ranges, "tx": (0, int(match[1]) - 1)}
    return ranges


def _offset(body: str, at: int, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the lowest and highest element that an expression behind a pointer adds."""
    rest = re.match(r"\)?\)?(\[| \+ )", body[at:])
    if not rest:
        return 0, 0
    if rest[1] == "[":
        inside, _ = _balanced(body, at + rest.end() - 1)
        return _interval(inside, ranges)
    start = at + rest.end()
    if body[start] == "(":
        inside, _ = _balanced(body, start)
        return _interval(inside, ranges)
    number = re.match(r"\w+", body[start:])
    assert number
    return _interval(number[0], ranges)


def _interval(text: str, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    text = re.sub(r"\(\(int32_t\)threadIdx\.x\)", "tx", text)
    text = re.sub(r"\(\(int32_t\)block_idx\)", "block_idx", text).replace("/", "//")
    return _bounds(ast.parse(text.strip(), mode="eval").body, ranges)


def _bounds(node: Any, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    if isinstance(node, ast.Constant):
        return node.value, node.value
    if isinstance(node, ast.Name):
        return ranges[node.id]
    a, b = _bounds(node.left, ranges)
    c, d = _bounds(node.right, ranges)
    match node.op:
        case ast.Add():
            return a + c, b + d
        case ast.Sub():
            return a - d, b - c
        case ast.Mult():
            return a * c, b * d
        case ast.BitAnd():
            return (a, b) if b <= d else (0, d)
        case ast.Mod():
            return (a, b) if b < d else (0, d - 1)
        case ast.FloorDiv():
            return a // d, b // c
        case ast.RShift():
            return a >> d, b >> c
        case ast.LShift():
            return a << c, b << d
    raise ValueError(ast.dump(node))


# ---- how many bytes a call moves -------------------------------------------------------------

_CALL = r"(?:asc_copy_\w+|asc_mmad\w*|ascend_\w*gemm_l1<[^>]*>|tl::AscendAllReduce<[^>]*>::run)"


def _calls(body: str) -> Iterator[tuple[str, list[str], list[tuple[int, int]]]]:
    """Yield each call that moves data: its name, its arguments, and where each stands."""
    for match in re.finditer(rf"({_CALL})\(", body):
        inside, _ = _balanced(body, match.end() - 1)
        positions, at = [], match.end()
        parts = _split(inside)
        for part in parts:
            start = body.index(part, at)
            positions.append((start, start + len(part)))
            at = start + len(part)
        yield match[1], parts, positions


def _up(value: int, to: int) -> int:
    return -(-value // to) * to


def _length(
    call: str, at: int, arguments: list[str], size: int, body: str, place: int
) -> int | None:
    """Return how many bytes a call touches through one of its pointers; None for an element."""
    numbers = [int(a) if a.isdigit() else 0 for a in arguments]
    if call == "asc_copy_gm2ub_align" and at == 0:
        return (numbers[2] - 1) * numbers[9] + numbers[3]
    if call == "asc_copy_ub2gm_align" and at == 1:
        return (numbers[2] - 1) * numbers[6] + numbers[3]
    if call == "asc_copy_gm2l1_nd2nz" and at == 0:
        rows = int(
            re.findall(
                r"asc_set_gm2l1_nz_para\(1, 1, static_cast<uint16_t>\((\d+)\)", body[:place]
            )[-1]
        )
        return rows * _up(numbers[5] * size, BLOCK_BYTES)
    if call == "asc_copy_gm2l1_dn2nz" and at == 0:
        return numbers[4] * numbers[5] * size
    if call.startswith(("asc_copy_l12l0a", "asc_copy_l12l0b")) and "mx" not in call:
        return numbers[4] * numbers[5] * FRACTAL_BYTES
    if call == "asc_copy_ub2l1" and at == 0:
        return ((numbers[2] - 1) * (numbers[3] + numbers[5]) + numbers[3]) * BLOCK_BYTES
    if call in ("asc_copy_l0c2gm", "asc_copy_l0c2ub") and at == 1:
        return numbers[5] * _up(numbers[2], 16) * size
    if call.startswith("asc_mmad") and at == 0:
        return _up(numbers[3], 16) * _up(numbers[5], 16) * size
    if call.startswith("tl::AscendAllReduce") and at == 1:
        return int(_split(call[call.index("<") + 1 : call.rindex(">")])[1]) * size
    if "gemm_l1" in call and at < 3:
        m, k, n = _gemm(call)[:3]
        packed = 2 if "float4" in call and at else 1
        return (m * n, m * k, n * k)[at] * size // packed
    return None


def _gemm(call: str) -> list[int]:
    return [int(v) for v in re.findall(r"\b\d+\b", call[call.index("<") :])[:4]]


def _hidden(call: str) -> Iterator[Use]:
    """Yield the slots that a multiplication from L1 takes in L0A and L0B, as its template does."""
    if "gemm_l1" not in call:
        return
    m, k, n, part = _gemm(call)
    kind = next(word for word in re.split(r"[<>, ]+", call) if word in BITS)
    slots = min(2, k // part)
    per_byte = 2 if kind == "float4_e2m1x2_t" else 1
    for memory, rows in (("l0a", m), ("l0b", n)):
        yield Use(memory, 0, slots * rows * part * BITS[kind] // 8 // per_byte)
