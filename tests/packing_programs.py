"""Random device functions, as they could enter the pass that merges shared memory.

They need not make sense: the pass plans memory for whatever tree of statements it gets, and no
kernel of a human visits all corners of that plan. Everything follows from the seed.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tilelang import tvm
from tvm import tirx

DTYPES = ("float16", "float32", "int8", "uint4", "float4_e2m1fn", "bool")
SIZES = (1, 7, 16, 33, 64, 100, 256, 500, 1024, 2048)
SWIZZLING = (
    "tma_load",
    "tma_store",
    "initialize_wgmma_descriptor",
    "initialize_tcgen05_descriptor",
)
DEEPEST = 4


class Program:
    """Builds one function from a seed."""

    def __init__(self, seed: int, *, open_sizes: bool = False) -> None:
        self.random = Random(seed)
        self.open_sizes = open_sizes
        self.flag = tirx.Var("flag", "int32")
        self.size = tirx.Var("size", "int32")
        self.count = 0
        self.in_scope: list[Any] = []
        self.alignments: dict[str, int] = {}
        self.used: list[tuple[Any, tuple[Any, ...]]] = []

    def function(self) -> Any:
        """Return the function; `tl.smem_alignment_map` names some of its buffers."""
        body = self.threads("blockIdx.x", self.block(0))
        function = tirx.PrimFunc([self.flag, self.size], body)
        alignments = {k: tirx.IntImm("int32", v) for k, v in self.alignments.items()}
        function = function.with_attr("tl.smem_alignment_map", alignments)
        return function.with_attr("global_symbol", "main")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- statements ----------------------------------------------------------------------

    def block(self, depth: int) -> Any:
        outside = len(self.in_scope)
        found = []
        for _ in range(self.random.randint(1, 5 if depth else 9)):
            if self.chance(0.12 if depth else 0.35):
                found.append(tirx.AllocBuffer(self.buffer()))
            found.append(self.statement(depth))
        del self.in_scope[outside:]
        return found[0] if len(found) == 1 else tirx.SeqStmt(found)

    def buffer(self) -> Any:
        # names differ, so that the compiler's order among namesakes, a chance, never shows
        name = f"{self.random.choice('abcwxyz')}{self.count}"
        self.count += 1
        extent = self.random.choice(SIZES)
        if self.open_sizes and self.chance(0.2):
            extent = self.size
        dtype = self.random.choice(DTYPES)
        if self.chance(0.3):
            self.alignments[name] = self.random.choice((8, 16, 128, 256, 512, 1024))
        self.in_scope.append(tirx.decl_buffer((extent,), dtype, name, scope="shared.dyn"))
        return self.in_scope[-1]

    def statement(self, depth: int) -> Any:
        if depth >= DEEPEST or self.chance(0.5):
            return self.leaf()
        makers = (self.loop, self.loop, self.repeat, self.branch, self.branch, self.roles)
        return self.random.choice((*makers, self.attribute))(depth + 1)

    def loop(self, depth: int) -> Any:
        extent = tirx.const(4, "int32") if self.chance(0.9) else self.load()
        return tirx.For(tirx.Var("i", "int32"), 0, extent, 0, self.block(depth))

    def repeat(self, depth: int) -> Any:
        return tirx.While(self.condition(), self.block(depth))

    def branch(self, depth: int) -> Any:
        condition, then = self.condition(), self.block(depth)
        return tirx.IfThenElse(condition, then, self.block(depth) if self.chance(0.5) else None)

    def roles(self, depth: int) -> Any:
        body = tirx.IfThenElse(self.flag > 0, self.block(depth), self.block(depth))
        if self.chance(0.3):
            body = tirx.SeqStmt([body, self.statement(depth)])
        if self.chance(0.3):
            body = tirx.AttrStmt(tirx.StringImm("x"), "pragma", 1, body)
        return tirx.AttrStmt([128, 128], "kWarpSpecializationScope", 0, body)

    def attribute(self, depth: int) -> Any:
        if self.chance(0.3):
            return self.threads("threadIdx.y", self.block(depth))
        key = self.random.choice(("lexical_alloc_scope", "extern_scope", "virtual_thread"))
        return tirx.AttrStmt(tirx.StringImm("x"), key, 1, self.block(depth))

    def threads(self, tag: str, body: Any) -> Any:
        axis = tirx.IterVar(None, tirx.Var("axis", "int32"), 1, tag)
        return tirx.AttrStmt(axis, "thread_extent", 4, body)

    def leaf(self) -> Any:
        if self.used and self.chance(0.1):  # one node in two places, as copied loop bodies are
            node, needs = self.random.choice(self.used)
            if all(any(need.same_as(have) for have in self.in_scope) for need in needs):
                return node
        if not self.in_scope or self.chance(0.1):
            return tirx.Evaluate(self.flag + 1)
        buffer = self.random.choice(self.in_scope)
        kind = self.random.choice(("store", "store", "read", "read", "swizzle", "bind", "assert"))
        if kind == "store":
            node = tirx.BufferStore(buffer, self.as_type(str(buffer.dtype), self.value()), [0])
        elif kind == "swizzle":
            operand = self.pointer(buffer) if self.chance(0.5) else tirx.BufferLoad(buffer, [0])
            op = tvm.ir.Op.get(f"tl.{self.random.choice(SWIZZLING)}")
            node = tirx.Evaluate(tirx.Call("handle", op, [operand]))
        elif kind == "bind":
            node = tirx.Bind(tirx.Var(f"v{self.random.randrange(10**9)}", "int32"), self.load())
        elif kind == "assert":
            node = tirx.AssertStmt(self.load() > 0, tirx.StringImm("ValueError"), [])
        else:
            node = tirx.Evaluate(self.load() + self.value())
        self.used.append((node, tuple(self.in_scope)))
        return node

    # ---- expressions ---------------------------------------------------------------------

    def condition(self) -> Any:
        return self.load() > 0 if self.chance(0.3) else self.flag > 0

    def value(self) -> Any:
        return self.load() if self.chance(0.5) else tirx.const(1, "int32")

    def load(self) -> Any:
        if not self.in_scope:
            return self.flag
        buffer = self.random.choice(self.in_scope)
        if self.chance(0.5):
            return self.as_type("int32", self.pointer(buffer))
        return self.as_type("int32", tirx.BufferLoad(buffer, [0]))

    def pointer(self, buffer: Any) -> Any:
        kind = tirx.type_annotation(str(buffer.dtype))
        return tirx.call_intrin("handle", "tirx.tvm_access_ptr", kind, buffer.data, 0, 1, 1)

    def as_type(self, dtype: str, value: Any) -> Any:
        return tirx.call_intrin(dtype, "tirx.reinterpret", value)
