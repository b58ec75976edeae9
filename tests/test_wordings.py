"""What people type wrong, and files that are none: one line that says what would be right."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from tilefit._devices.names import expand
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel import bounded
from tilefit._planning.shapes import read_shapes
from tilefit._planning.values import read_values
from tilefit.cli import main as command

GEMM = str(Path(__file__).parent.parent / "examples" / "gemm.py")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command([*words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_two_settings_behind_one_flag(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "plan", GEMM, "-d", "h100", "--set", "M=1", "N=2", "K=3")
    assert line == "tilefit: one --set takes one NAME=VALUE: add --set N=2 --set K=3\n"
    line = refused(capsys, "plan", GEMM, "-d", "h100", "--set", "M=1", "N", "K=3")
    assert "unrecognized arguments: N K=3" in line


def test_one_colon_before_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "plan", f"{GEMM}:matmul", "-d", "h100")
    assert f"a kernel follows two colons, as in {GEMM}::matmul" in line
    assert "colons" not in refused(capsys, "plan", "nowhere.py:matmul", "-d", "h100")


def test_too_little_memory_for_anything(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "plan", GEMM, "-d", "h100", "--memory-limit", "1KiB")
    assert "--memory-limit of 1,024 B" in line
    assert "256 MiB" in line


@pytest.mark.parametrize("path", ["/bin/ls", "/bin/true"])
def test_what_is_no_python(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "plan", f"{GEMM}::matmul", "-d", "h100", "--python", path)
    assert line.startswith(f"tilefit: {path} does not run as a Python interpreter")


TRITON = "import triton\n\n@triton.jit\ndef add(x):\n    pass\n"


@pytest.mark.tilelang
def test_a_triton_file_is_called_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "add.py"
    path.write_text(TRITON, encoding="utf-8")
    for source in (str(path), f"{path}::add"):
        line = refused(capsys, "plan", source, "-d", "h100")
        assert "add.py is written for Triton" in line


def test_a_near_miss_is_followed_by_what_there_is() -> None:
    with pytest.raises(UnknownNameError) as raised:
        raise UnknownNameError("kernel", "matmull", ["matmul"], "gemm.py has matmul(M)")
    words = "unknown kernel 'matmull'; did you mean matmul? gemm.py has matmul(M)"
    assert str(raised.value) == words


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", 1000)
    endless = tmp_path / "endless"
    endless.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="or no end"):
        read_shapes(endless)
    with pytest.raises(InputError, match="or no end"):
        read_values(endless)
    (tmp_path / "card.toml").symlink_to("/dev/zero")
    assert "or no end" in refused(capsys, "devices", str(tmp_path / "card.toml"))
    assert "or no end" in refused(capsys, "explain", "--log", str(endless))
    # as much as there may be is read, and not a byte more
    assert bounded.read_whole(io.BytesIO(b"x" * 1000), "it") == b"x" * 1000
    with pytest.raises(InputError):
        bounded.read_whole(io.BytesIO(b"x" * 1001), "it")


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_text, args=("M\n128\n",))
    thread.start()
    assert read_shapes(tmp_path / "pipe") == ({"M": 128},)
    thread.join()


def test_a_mark_of_byte_order_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_bytes(b'\xef\xbb\xbfbase = "rtx-4090"\n')
    assert [one.name for one in expand([str(path)])] == ["card"]
    path.write_bytes(b'base = "rtx-4090"\nname = "\xff"\n')
    with pytest.raises(InputError, match="is no UTF-8 text: byte 26 is 0xff"):
        expand([str(path)])


@pytest.mark.parametrize("key", ["name", "title"])
def test_a_device_whose_name_would_steer_a_terminal(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "card.toml"
    path.write_text(f'base = "rtx-4090"\n{key} = "\\u001b[31mred"\n', encoding="utf-8")
    line = refused(capsys, "devices", str(path))
    assert "characters that cannot be printed" in line
    assert "\x1b" not in line


def test_a_device_file_with_a_name_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "card.toml"
    path.write_text('base = "rtx-4090"\nname = "h100"\n', encoding="utf-8")
    assert "name 'h100' is taken by tilefit's own h100" in refused(capsys, "devices", str(path))
