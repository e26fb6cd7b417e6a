"""plan-emu.py make|judge FOLDER: .npy inputs for plan-emu.test, and what its kernels should have made of them."""
import array
import math
import pathlib
import struct
import sys

K, N = 256, 24


def write(path, descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"<f4": "f", "<u2": "H", "<u4": "I", "|u1": "B"}[descr]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + array.array(code, values).tobytes())


def read(path, descr, shape):
    content = path.read_bytes()
    size = struct.unpack("<H", content[8:10])[0]
    header = eval(content[10:10 + size])
    assert header == {"descr": descr, "fortran_order": False, "shape": shape}, header
    return array.array({"<f4": "f", "<u2": "H", "<u4": "I"}[descr], content[10 + size:])


def bf16(value):
    """Truncated: the values below need no rounding."""
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def widen(half):
    return struct.unpack("<f", struct.pack("<I", half << 16))[0]


def values(count, seed):
    return [((i * 37 + seed * 11) % 61 - 30) / 16 for i in range(count)]


def close(got, expected, tolerance):
    assert len(got) == len(expected), (len(got), len(expected))
    for i, (a, b) in enumerate(zip(got, expected)):
        assert abs(a - b) <= tolerance * max(1, abs(b)), (i, a, b)


def make(folder):
    write(folder / "w.npy", "<u2", (N, K), map(bf16, values(N * K, 1)))
    write(folder / "x.npy", "<f4", (K,), values(K, 2))
    write(folder / "row.npy", "<u2", (3, K), map(bf16, values(3 * K, 3)))
    write(folder / "scale.npy", "<u2", (K,), map(bf16, values(K, 4)))
    write(folder / "counter.npy", "<u4", (1,), [0])


def judge(folder):
    w, x = values(N * K, 1), values(K, 2)
    close(read(folder / "y.npy", "<f4", (N,)),
          [sum(w[n * K + k] * x[k] for k in range(K)) for n in range(N)], 1e-5)
    rows, scale, expected = values(3 * K, 3), values(K, 4), []
    for row in range(3):
        part = rows[row * K:(row + 1) * K]
        factor = 1 / math.sqrt(sum(v * v for v in part) / K + 1e-6)
        expected += [v * factor * (1 + s) for v, s in zip(part, scale)]
    close(list(map(widen, read(folder / "norm.npy", "<u2", (3, K)))), expected, 2 ** -8)
    # Every thread of the last CTA gives the sum of the partial sums of its column.
    close(read(folder / "sum.npy", "<f4", (64,)), [sum(x[t::64]) for t in range(64)], 1e-6)
    assert read(folder / "counter-after.npy", "<u4", (1,))[0] == 0
    exponentials = [math.exp(v - max(x)) for v in x]
    close(read(folder / "softmax.npy", "<f4", (1, K)), [e / sum(exponentials) for e in exponentials], 1e-6)


{"make": make, "judge": judge}[sys.argv[1]](pathlib.Path(sys.argv[2]))
