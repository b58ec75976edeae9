"""What nvcc, ptxas and nvdisasm of CUDA 13.0 print, and the values in it, read by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from tilefit._assembler.ptxas import (
    FunctionUse,
    first_error,
    function_uses,
    matrix_instructions,
    remarks,
)

# Three kernels; `slow` calls a function that is not inlined, `spilling` is held to 64 registers.
VERBOSE = """\
kernel.cu(7): warning #177-D: variable "a" was declared but never referenced

ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine \
register count at entry.
ptxas info    : 9 bytes gmem, 72 bytes cmem[4]
ptxas info    : Compiling entry function 'spilling' for 'sm_80'
ptxas info    : Function properties for spilling
    368 bytes stack frame, 404 bytes spill stores, 436 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 368 bytes cumulative stack size, 360 bytes \
cmem[0]
ptxas info    : Compile time = 111.502 ms
ptxas info    : Compiling entry function 'slow' for 'sm_80'
ptxas info    : Function properties for slow
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 48 registers, used 0 barriers, 176 bytes cumulative stack size, 360 bytes \
cmem[0]
ptxas info    : Compile time = 14.032 ms
ptxas info    : Function properties for _Z6calledfPf
    160 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'gemm_kernel' for 'sm_80'
ptxas info    : Function properties for gemm_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 240 registers, used 2 barriers, 1024 bytes smem, 376 bytes cmem[0]
ptxas info    : Compile time = 98.875 ms
"""

SASS = """\
	.target	sm_90a

	.elftype	@"ET_EXEC"

//--------------------- .text.gemm_kernel         --------------------------
	.section	.text.gemm_kernel,"ax",@progbits
	.align	128
        .global         gemm_kernel
gemm_kernel:
.text.gemm_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P1 BRA `(.L_x_1) ;
        /*0020*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8].tnspB, R24, !UPT ;
        /*0030*/                   FFMA R4, R4, R5, R6 ;
.L_x_1:
        /*0040*/              @!P0 HGMMA.64x128x16.F32 R24, gdesc[UR12].tnspB, R24, gsb0 ;
        /*0050*/              @UP2 UTCHMMA gdesc[UR6], gdesc[UR8], tmem[UR10], idesc[UR5] ;
        /*0060*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0070*/                   IMAD.MOV.U32 R2, RZ, RZ, R3 ;

	.section	.text.plain,"ax",@progbits
plain:
.text.plain:
        /*0000*/                   LEA.HI.X R3, R2, c[0x0][0x164], R3, 0x1, P0 ;
        /*0010*/                   EXIT ;
"""


def test_each_kernel_function_gets_its_own_numbers() -> None:
    gemm, slow, spilling = function_uses(VERBOSE)
    assert gemm == FunctionUse(
        name="gemm_kernel",
        registers_per_thread=240,
        spill_store_bytes=0,
        spill_load_bytes=0,
        stack_bytes=0,
        static_bytes=1024,
        barriers=2,
    )
    assert (spilling.name, spilling.registers_per_thread) == ("spilling", 64)
    assert (spilling.spill_store_bytes, spilling.spill_load_bytes) == (404, 436)
    assert (spilling.static_bytes, spilling.barriers) == (0, 1)
    # 16 of its own and 160 of the function that it calls
    assert (slow.name, slow.stack_bytes, slow.spill_store_bytes) == ("slow", 176, 0)


def test_text_without_kernel_functions_gives_none() -> None:
    assert function_uses("") == ()
    assert function_uses("ptxas info    : 0 bytes gmem\n") == ()


def test_matrix_instructions_are_counted_by_function_and_not_taken_for_multiply_adds() -> None:
    counts = matrix_instructions(SASS)
    assert counts == {"gemm_kernel": Counter(HGMMA=2, UTCHMMA=1), "plain": Counter()}
    gemm = function_uses(VERBOSE, counts)[0]
    assert (gemm.matrix_instructions, gemm.matrix_kinds) == (3, ("HGMMA", "UTCHMMA"))


def test_code_that_was_not_read_has_an_unknown_count_and_not_none_at_all() -> None:
    assert function_uses(VERBOSE)[0].matrix_instructions is None
    assert function_uses(VERBOSE, {"gemm_kernel": Counter()})[0].matrix_instructions == 0


def test_remarks_are_kept_and_plain_information_is_not() -> None:
    twice = VERBOSE + "ptxas warning : something odd\n" + VERBOSE
    assert remarks(twice) == (
        "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
        "register count at entry.",
        "something odd",
    )


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'sm_70'\n", "nvcc 13.0 has no sm_70"),
        (
            "ptxas error   : Entry function 'k' uses too much shared data (0x13880 bytes, "
            "0xc000 max)\nptxas info    : 0 bytes gmem\n",
            "ptxas: Entry function 'k' uses too much shared data (0x13880 bytes, 0xc000 max)",
        ),
        (
            "ptxas /tmp/a/tmpxft_1.ptx, line 30; error   : Feature 'mul.bf16x2' requires .target "
            "sm_90 or higher\nptxas fatal   : Ptx assembly aborted due to errors\n",
            "ptxas: Feature 'mul.bf16x2' requires .target sm_90 or higher",
        ),
        (
            "/tmp/a/kernel.cu:3:10: fatal error: curand_kernel.h: No such file or directory\n"
            "    3 | #include <curand_kernel.h>\ncompilation terminated.\n",
            "kernel.cu line 3: curand_kernel.h: No such file or directory",
        ),
        (
            'kernel.cu(7): warning #177-D: variable "error: x" was declared\n'
            'kernel.cu(9): error: identifier "foo" is undefined\n',
            'kernel.cu line 9: identifier "foo" is undefined',
        ),
        (
            "nvcc error   : 'ptxas' died due to signal 9 (Kill signal)\n",
            "nvcc: 'ptxas' died due to signal 9 (Kill signal)",
        ),
        ("ptxas info    : 0 bytes gmem\n", None),
        ("", None),
    ],
)
def test_the_first_error_in_one_line(output: str, reason: str | None) -> None:
    assert first_error(output, "sm_70", "13.0") == reason


def test_a_long_error_is_cut_to_one_short_line() -> None:
    reason = first_error("kernel.cu(1): error: " + "x " * 5000, "sm_80", "13.0")
    assert reason is not None
    assert (len(reason), reason[-3:]) == (300, "...")
