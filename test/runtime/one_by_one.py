"""one_by_one.py BUNDLE PROGRAM WEIGHTS PROMPTS COUNT: every prompt by a plan-run of its own, as the batch example prints it."""
import json
import subprocess
import sys

bundle, program, weights, prompts, count = sys.argv[1:]
for number, prompt in enumerate(prompts.split(";")):
    out = subprocess.run(["plan-run", bundle, "--program", program, "--weights", weights, "--tokens", prompt, "--generate", count, "--json"],
                         check=True, capture_output=True, text=True).stdout
    print(f"{number}: " + ",".join(map(str, json.loads(out)["generated"][0])))
