"""Prints what a plan costs: to compile, in the bundle, and to run on the emulator. usage: plan.py [PLAN.json CONFIG.json]

Times are of this machine and of this run; counts are not, and test/end-to-end/figures.test holds them to their limits.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"


def timed(*command):
    start = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return time.monotonic() - start, done.stdout


def main(plan=ROOT / "examples/plans/qwen3.6-35b-a3b/decode-n1.json",
         config=ROOT / "examples/models/qwen3.6-35b-a3b/config.json"):
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        bundle = pathlib.Path(folder, "b")
        compile_it = (BIN / "planc", plan, "--model", config, "--target", "gb10", "--cache-dir", folder + "/cache", "-o", bundle)
        print(f"planc, one target, empty cache      {timed(*compile_it)[0]:8.2f} s")
        print(f"planc, one target, warm cache       {timed(*compile_it)[0]:8.2f} s")
        manifest = json.loads(timed(BIN / "planc", "inspect", bundle, "--json")[1])
        kernels = [k["targets"][manifest["targets"][0]["name"]] for k in manifest["kernels"]]
        stored = sum(b["bytes"] for b in manifest["buffers"])
        print(f"bundle                              {os.path.getsize(bundle):12,} bytes")
        print(f"kernels                             {len(kernels):12,}")
        print(f"PTX                                 {sum(k['ptx_bytes'] for k in kernels):12,} bytes")
        if all(k["code_bytes"] is not None for k in kernels):
            print(f"machine code                        {sum(k['code_bytes'] for k in kernels):12,} bytes")
            print(f"registers, most                     {max(k['registers'] for k in kernels):12,}")
            print(f"spilled                             {sum(k['spill_bytes'] for k in kernels):12,} bytes")
        print(f"workspace                           {manifest['workspace']['bytes']:12,} bytes, "
              f"{manifest['workspace']['bytes'] / stored:.3f} of all stored values")
        seconds, out = timed(BIN / "plan-run", bundle, "--weights", "random:1", "--tokens", "5,6,7", "--json")
        run = json.loads(out)
        print(f"emulator, a token after the first   {run['steps'][-1]['ms'] / 1000:8.2f} s")
        print(f"emulator, memory (Pss)              {run['memory']['pss']:12,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
