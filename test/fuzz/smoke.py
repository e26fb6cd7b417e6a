"""A short run of one fuzz target that is the same each time: the seeds in a fixed order, a fixed number of mutants.

usage: smoke.py PROGRAM SEEDS RUNS SCRATCH
"""
import pathlib
import subprocess
import sys


def without_aslr():
    """What starts a program at the same addresses each time, where the system lets us."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
    except OSError:
        return []


def main(program, seeds, runs, scratch):
    seeds, scratch = pathlib.Path(seeds), pathlib.Path(scratch)
    files = sorted(seeds.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    scratch.mkdir(parents=True, exist_ok=True)
    inputs = scratch / "inputs"
    inputs.write_text(",".join(map(str, files)))
    dictionary = seeds.with_suffix(".dict")
    # Kernels see addresses and what they compute from them; comparisons of pointers are no source of mutations.
    command = [*without_aslr(), program, f"-seed_inputs=@{inputs}", f"-runs={len(files) + 1 + int(runs)}", "-seed=1", "-use_cmp=0",
               "-max_len=131072", "-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={scratch}/"]
    command += [f"-dict={dictionary}"] if dictionary.exists() else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = done.stdout.splitlines()
    print("\n".join(lines[-3:] if done.returncode == 0 else lines[-60:]))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
