"""same_output.py TEST...: every planemu-run of the tests' RUN lines prints the same interpreted and compiled."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

failed = False
for path in map(pathlib.Path, sys.argv[1:]):
    text = re.sub(r"\\\n\s*//\s*RUN:", " ", path.read_text())
    runs = 0
    for line in re.findall(r"RUN:\s*(.*)", text):
        words = shlex.split(line.split("|")[0].replace("2>&1", "").replace("%s", str(path)))
        if "planemu-run" not in words:
            continue
        before, command = words[: words.index("planemu-run")], words[words.index("planemu-run"):]
        settings = dict(word.split("=", 1) for word in before if "=" in word)
        outputs = []
        for mode in ("0", "always"):
            done = subprocess.run(command, env=os.environ | settings | {"PLANEMU_JIT": mode}, capture_output=True, text=True)
            # Where memory lies, and how far from there a wild address is, differs from run to run.
            outputs.append((done.returncode, re.sub(r"0x[0-9a-f]{8,}|[0-9]{12,}", "ADDRESS", done.stdout + done.stderr)))
        runs += 1
        if outputs[0] != outputs[1]:
            failed = True
            print(f"{path.name}: {' '.join(command)}\ninterpreted: {outputs[0]}\ncompiled: {outputs[1]}")
    print(f"{path.name}: {runs} runs are the same")
sys.exit(failed)
