"""Prints the PTX of the Triton kernels below as triton-KERNEL.ptx, for sm_80.

Needs the package triton (3.9), no GPU: print-triton.py FOLDER. A launch has 128 threads and the shared memory printed here;
two more parameters than a kernel names (scratch memory) are null.
"""
import os
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + at, v / tl.sum(v, axis=0), mask=at < n)

@triton.jit
def layer_norm(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * n + at, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(mask, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    tl.store(out + row * n + at, d * rstd * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask), mask=mask)

@triton.jit
def matmul(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    pa = a + rows[:, None] * k + depth[None, :]
    pb = b + depth[:, None] * n + columns[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for k0 in range(0, k, K):
        total = tl.dot(tl.load(pa), tl.load(pb), total)
        pa += K
        pb += K * n
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))

def show(kernel, signature, constants, folder):
    names = dict(signature, **{name: "constexpr" for name in constants})
    # Pointers and lengths are multiples of 16, so that accesses are wide.
    attributes = {(n,): [["tt.divisibility", 16]] for n, name in enumerate(names) if name not in ("eps", *constants)}
    source = ASTSource(fn=kernel, signature=names, constexprs=constants, attrs=attributes)
    options = {"num_warps": 4, "num_stages": 3, "ptx_version": 87}
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
    name = compiled.metadata.name
    print(name, "shared memory:", compiled.metadata.shared)
    with open(os.path.join(folder, f"triton-{name.replace('_', '-')}.ptx"), "w") as file:
        file.write(compiled.asm["ptx"])

folder = sys.argv[1]
f32, bf16 = "*fp32", "*bf16"
show(vector_add, {"x": f32, "y": f32, "out": f32, "n": "i32"}, {"BLOCK": 1024}, folder)
show(softmax, {"x": f32, "out": f32, "n": "i32"}, {"BLOCK": 1024}, folder)
show(layer_norm, {"x": f32, "weight": f32, "bias": f32, "out": f32, "n": "i32", "eps": "fp32"}, {"BLOCK": 1024}, folder)
show(matmul, {"a": bf16, "b": bf16, "c": bf16, "n": "i32", "k": "i32"}, {"M": 64, "N": 64, "K": 32}, folder)
