"""in-terminal.py COMMAND...: runs it with a terminal as stderr; prints what came there, with what controls the terminal spelled out."""
import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
text = b""
try:
    while part := os.read(ours, 4096):
        text += part
except OSError:  # nobody has the other end any more
    pass
print(text.decode().replace("\r\n", "\n").replace("\r", "<return>").replace("\033[K", "<erase>"), end="")
sys.exit(process.wait())
