"""What `explain` answers with: plain values, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._kernel.memory import Evidence, Memory


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose limit a number is.

    Attributes:
        kind: ``"block"`` (what one block may use), ``"core"`` (what a whole core has),
            ``"default"`` (without the opt-in), ``"physical"``, ``"condition"``, ``"columns"``,
            ``"threads"``, ``"registers"``, ``"hardware"`` (with what the system keeps of it).
        words: The kind in words that can follow "it is".
        devices: Names of the devices that have it, architectures before their products.
    """

    kind: str
    words: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Arithmetic over tile parameters that gives a number.

    Attributes:
        rule: Name of the rule.
        formula: The rule in names: ``num_stages x (BLOCK_M x BLOCK_K + ...) x bytes``.
        written: The same in numbers.
        value: What it comes to, in `unit`.
        unit: ``"bytes"``, ``"bits"``, ``"columns"`` or ``"registers"``.
        why: Which compiler works so, and when.
        assumed: What the parameters did not say and the number does; empty if nothing.
    """

    rule: str
    formula: str
    written: str
    value: int
    unit: str
    why: str
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Parameters changed so that the formula stays within the limit.

    Attributes:
        steps: Each parameter as its author spells it, its value, and the value that fits.
        value: What the formula comes to then, in the unit of the sum.
        margin: How far that is below the limit, in the same unit.
    """

    steps: tuple[tuple[str, int, int], ...]
    value: int
    margin: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Something likely, and the command that decides whether it is that (empty: none can)."""

    words: str
    command: str


@dataclass(frozen=True, slots=True)
class Room:
    """One limit that devices have, and whether a number without a limit is within it."""

    limit_bytes: int
    devices: tuple[str, ...]
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One message that was recognised.

    Attributes:
        message: The message as found, on one line.
        form: Name of the form in the table.
        toolchain: Who says so, a short name.
        title: The same to read.
        says: What the message means, where it is not that a memory is too small.
        memory: Which memory; None where it is none, or where the text does not say.
        name: The kernel or buffer that the message names; may be empty.
        unit: What `required` and `limit` count.
        required: What is asked for, as the message counts it.
        limit: What there is, as the message counts it, or from the device that is named.
        required_bytes: The same in bytes; None for columns, registers and threads.
        limit_bytes: Likewise.
        over_bytes: By how many bytes it is over; None if unknown.
        over: By how much in `unit`.
        limit_from: ``"message"``, or the name of the device that the text or the caller named.
        whose: Whose limit that is, as far as the tables know.
        rooms: Without a limit: every limit there is, and whether the number is within it.
        fatal: Whether the program ends; None if that depends on what is not in the text.
        fatal_why: The reason in words.
        notes: What the numbers include, leave out or cannot say.
        sums: Arithmetic over the tile's parameters that gives the required number.
        params: The parameters that it was tried with.
        changes: The smallest changes that fit by the first of the sums.
        causes: For a message without numbers: likely ones first.
        advice: What to change.
        command: A command that goes on from here; empty if there is none.
        count: How often the message stands in the text.
    """

    message: str
    form: str
    toolchain: str
    title: str
    says: str
    memory: Memory | None
    name: str = ""
    unit: str = "bytes"
    required: int | None = None
    limit: int | None = None
    required_bytes: int | None = None
    limit_bytes: int | None = None
    over_bytes: int | None = None
    over: int | None = None
    limit_from: str = "message"
    whose: tuple[Whose, ...] = ()
    rooms: tuple[Room, ...] = ()
    fatal: bool | None = None
    fatal_why: str = ""
    notes: tuple[str, ...] = ()
    sums: tuple[Sum, ...] = ()
    params: tuple[tuple[str, object], ...] = ()
    changes: tuple[Change, ...] = ()
    causes: tuple[Cause, ...] = ()
    advice: tuple[str, ...] = ()
    command: str = ""
    count: int = 1

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that have the limit."""
        return tuple(dict.fromkeys(name for whose in self.whose for name in whose.devices))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything recognised in a text, in its order.

    Attributes:
        findings: The messages; empty if nothing is known.
        more: How many further different messages the text holds, beyond those explained.
        evidence: Read from a text and our tables, so always ``declared``.
    """

    findings: tuple[Finding, ...]
    more: int = 0
    evidence: Evidence = Evidence.DECLARED
