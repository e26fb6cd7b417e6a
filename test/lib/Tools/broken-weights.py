"""Breaks the tiny model's checkpoint in one way after the other; plan-run must refuse each, and say what is wrong.

usage: broken-weights.py TINY.bundle model.safetensors FOLDER      (plan-run on PATH)
"""
import json
import pathlib
import struct
import subprocess
import sys

bundle, good, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
raw = pathlib.Path(good).read_bytes()
length = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
NORM = "model.language_model.layers.0.input_layernorm.weight"
EXPERT = "model.language_model.layers.2.mlp.experts.5.up_proj.weight"
SCALE = EXPERT + "_scale_inv"


def pack(entries, payload=data, size=None):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + payload


def edit(name, **fields):
    return pack({**header, name: {**header[name], **fields}})


def without(*names):
    """Leaves tensors out, data and all."""
    entries, payload = {}, b""
    for name, entry in header.items():
        if name in names:
            continue
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            entry = {**entry, "data_offsets": [len(payload), len(payload) + end - begin]}
            payload += data[begin:end]
        entries[name] = entry
    return pack(entries, payload)


begin, end = header[NORM]["data_offsets"]
# What is wrong, the file, and what the message must contain.
CASES = [
    ("empty", b"", "has 0 bytes, a safetensors file has at least 8"),
    ("header cut", raw[:5000], "header needs 37304 bytes at offset 8, but the file ends at 5000"),
    ("data cut", raw[:-1000], "but the file ends at"),
    ("data too long", raw + b"x", "at the end belong to no tensor"),
    ("absurd header length", pack(b"", raw, 2**63), "at most 100000000 are allowed"),
    ("no JSON", pack(b"{]"), "header: not JSON at byte 1"),
    ("a list", pack(b"[]"), "header: expected an object"),
    ("deep", pack(b"[" * 100000), "nested deeper than 4 levels"),
    ("NUL byte", pack(b'{"a\0": 1}'), "a NUL byte"),
    ("duplicate tensor", pack(b'{"a": 1, "a": 2}'), 'key "a" occurs twice'),
    ("negative shape", edit(NORM, shape=[-256]), f'tensor "{NORM}": shape is not a list of non-negative'),
    ("huge shape", edit(NORM, shape=[2**62, 2**62]), "is larger than any file"),
    ("shape of other bytes", edit(NORM, shape=[255]), "BF16 [255] has 510 bytes, but data_offsets"),
    ("unknown dtype", edit(NORM, dtype="F12"), f'tensor "{NORM}": unknown dtype "F12"'),
    ("range backwards", edit(NORM, data_offsets=[end, begin]), "end before they begin"),
    ("range outside", edit(NORM, data_offsets=[2**40, 2**40 + 512]), f'tensor "{NORM}" needs 512 bytes at offset'),
    ("overlap", edit(NORM, data_offsets=[begin - 2, end - 2]), f'tensor "{NORM}" at offset'),
    ("hole", edit(NORM, data_offsets=[begin + 2, end + 2]), f'before tensor "{NORM}" belong to no tensor'),
    ("unknown key", edit(NORM, extra=1), 'unknown key "extra"'),
    ("other shape", edit(NORM, shape=[2, 128]), f"{NORM} is BF16 [2, 128], expected"),
    ("other dtype", edit(EXPERT, dtype="I8"), f"{EXPERT} is I8 [128, 256], expected F8_E4M3"),
    ("tensor missing", without(NORM), f"{NORM} is missing"),
    ("expert missing", without(EXPERT, SCALE), f"2 tensors are missing or different:\n  {EXPERT} is missing"),
    ("scale missing", without(SCALE), f"{SCALE} is missing, expected BF16 or F32 [1, 2]"),
    ("everything missing", without(*[n for n in header if n != "__metadata__"]), "281 tensors are missing"),
]

failed = False
for what, content, expected in CASES:
    folder.joinpath("model.safetensors").write_bytes(content)
    logits = folder / "logits.npy"
    run = subprocess.run(["plan-run", bundle, "--weights", folder, "--tokens", "1", "--logits", logits],
                         capture_output=True, text=True)
    if run.returncode != 1 or expected not in run.stderr or "model.safetensors" not in run.stderr and \
            str(folder) not in run.stderr or logits.exists():
        failed = True
        print(f"{what}: exit {run.returncode}, expected: {expected}\n{run.stderr[:600]}")
print(f"{len(CASES)} checkpoints refused" if not failed else "FAILED")
sys.exit(failed)
