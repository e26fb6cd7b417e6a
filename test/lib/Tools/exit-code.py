"""exit-code.py N COMMAND...: runs the command and checks that it exits with N, and without a signal."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit(f"{sys.argv[2]} exited with {code}, expected {sys.argv[1]}")
