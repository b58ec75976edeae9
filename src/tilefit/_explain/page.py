"""docs/messages.md, made from the table of messages."""

from __future__ import annotations

from tilefit._explain.forms import Form, advice, forms, toolchain_title
from tilefit._explain.pattern import plain

_FATAL = {
    "yes": "yes",
    "perhaps": "often not: an autotuner drops the candidate",
    "warning": "a warning; the launch that follows fails",
}


def page() -> str:
    """Return the page (``python -m tilefit._explain.page > docs/messages.md``)."""
    lines = [
        "# Messages that `tilefit explain` knows",
        "",
        "Made by `python -m tilefit._explain.page` from `src/tilefit/data/messages.toml`. N is",
        "what is needed, M the limit; `...` may be anything. White space, line breaks, case,",
        "punctuation and colours do not matter, and the end may be missing.",
        "",
        "| tool | message | counts | memory | fatal | known from |",
        "|---|---|---|---|---|---|",
        *(row for form in forms() for row in _rows(form)),
        "",
        "## What to change",
        "",
    ]
    for form in forms():
        lines += _section(form)
    return "\n".join(lines).rstrip() + "\n"


def _rows(form: Form) -> list[str]:
    sizes = form.unit in ("bytes", "bits")
    cells = [
        form.unit if form.unit and "{" in form.texts[0] else "no numbers",
        form.memory or ("by the message" if sizes else "-"),
        _FATAL[form.fatal],
        form.source,
    ]
    title = toolchain_title(form.toolchain)
    return [f"| {title} | `{plain(text)}` | {' | '.join(cells)} |" for text in form.texts]


def _section(form: Form) -> list[str]:
    lines = [f"### {form.name}", ""]
    if form.says:
        lines += [f"{_sentence(form.says)}", ""]
    if form.numbers:
        lines += [f"What is counted: {form.numbers}.", ""]
    lines += [f"- {advice(key)}" for key in form.advice]
    if form.causes:
        lines += [""] * bool(form.advice) + ["Likely, in this order:", ""]
    for number, cause in enumerate(form.causes, 1):
        command = cause.command.format(device="DEVICE")
        lines.append(f"{number}. {_sentence(cause.words)}" + (f" `{command}`" if command else ""))
    return [*lines, ""]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
