import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=128):
    if M == 128:
        raise ValueError("M must not be 128")

    @T.prim_func
    def f(A: T.Tensor((M, 64), "float16")):
        with T.Kernel(1, threads=128):
            pass

    return f
