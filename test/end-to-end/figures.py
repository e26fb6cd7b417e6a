"""Prints the figures of a bundle that have a limit. usage: figures.py INSPECT.json BUNDLE"""
import json
import os
import sys

manifest = json.load(open(sys.argv[1]))
program = manifest["programs"][0]
print(f"nodes {program['nodes']}, groups {program['groups']}, launches {program['launches']}")


def limit(text, figure, most):
    print(f"{text}: {'yes' if figure <= most else 'NO'} ({figure:,})")


limit("kernels at most 40", len(manifest["kernels"]), 40)
limit("bytes a target at most 4 MB", os.path.getsize(sys.argv[2]) // len(manifest["targets"]), 4 << 20)
stored = sum(b["bytes"] for b in manifest["buffers"])
print(f"stored values {stored:,} bytes, scratch {program['workspace']['scratch_bytes']:,} bytes")
limit("workspace at most a tenth of the stored values", manifest["workspace"]["bytes"], stored // 10)
spilled = [f"{k['name']} on {arch}: {t['spill_bytes']} bytes"
           for k in manifest["kernels"] for arch, t in k["targets"].items() if t["spill_bytes"]]
print("spills: " + ("; ".join(spilled) or "none"))
