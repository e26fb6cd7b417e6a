"""Reads a disassembly of libplanemu: vector instructions of AVX and later belong into the namespaces v3 and v4 alone.

An inline function that the linker kept from the wrong object would end a host without AVX by an illegal instruction.
"""
import re
import sys

wide = {"v3": 0, "v4": 0}
stray = {}
owner = symbol = ""
for line in sys.stdin:
    if line.endswith(">:\n"):
        symbol = line.split("<", 1)[1][:-3]
        owner = "v4" if "7planemu2v4" in symbol else "v3" if "7planemu2v3" in symbol else ""
    elif "mm" in line or "\tv" in line:
        ymm, zmm = "%ymm" in line, "%zmm" in line or re.search(r"%k[0-7]", line)
        if owner != "v4" and zmm or not owner and (ymm or re.search(r"\tv(?!er)[a-z0-9]+\s", line)):
            stray.setdefault(symbol, line.strip())
        elif owner:
            wide[owner] += bool(zmm if owner == "v4" else ymm)
for symbol, line in stray.items():
    print(f"{symbol}: {line}")
print("separate" if wide["v3"] > 1000 and wide["v4"] > 1000 and not stray else f"mixed or missing: {wide}")
