"""Compares logits of a run with the oracle's: per step the relative norm of the difference, and the argmax.

usage: compare_logits.py RUN.npy ORACLE.npy [LIMIT]   (float32; [steps, 1, vocab]; exit 1 if a step is off)
"""
import ast
import math
import struct
import sys


def load(path):
    data = open(path, "rb").read()
    assert data[:6] == b"\x93NUMPY", f"{path} is no .npy file"
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else (struct.unpack("<I", data[8:12])[0], 12)
    header = ast.literal_eval(data[start:start + size].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], f"{path}: {header}"
    values = struct.unpack(f"<{math.prod(header['shape'])}f", data[start + size:])
    vocab = header["shape"][-1]
    return [values[i:i + vocab] for i in range(0, len(values), vocab)]


def main(run, oracle, limit=0.02):
    ours, theirs = load(run), load(oracle)
    if len(ours) != len(theirs):
        sys.exit(f"{len(ours)} steps, the oracle has {len(theirs)}")
    worst, off = 0.0, []
    for step, (a, b) in enumerate(zip(ours, theirs)):
        norm = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))
        worst = max(worst, norm)
        if not norm <= float(limit) or a.index(max(a)) != b.index(max(b)):
            off.append(f"step {step}: relative norm {norm:.4f}, argmax {a.index(max(a))} for {b.index(max(b))}")
    print("\n".join(off) or f"{len(ours)} steps agree: relative norm at most {worst:.4f}, every argmax equal")
    sys.exit(bool(off))


if __name__ == "__main__":
    main(*sys.argv[1:])
