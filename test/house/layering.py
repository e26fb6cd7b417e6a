"""Compares every #include of the project with the drawing of who may include whom.

A folder may include itself, what it is listed with here, and nothing else of the project. Four walls carry the weight: Bundle is all
that compiler and runtime share; Codegen knows GPU modules, not the plan; Reference and Schedule never meet, since
one judges the other; the emulator knows PTX, not what was meant by it.
"""
import pathlib
import re
import sys

MAY = {
    "include/planc": [],
    "include/planrt": [],
    "include/planemu": [],
    "lib/Support": [],
    "lib/Target": ["lib/Support"],
    "lib/Numerics": ["lib/Support"],
    "lib/Bundle": ["lib/Support", "lib/Numerics"],
    "dialects/Plan": ["lib/Support"],
    "lib/Import": ["lib/Support", "dialects/Plan"],
    "passes": ["lib/Support", "lib/Target", "dialects/Plan", "lib/Schedule"],
    "lib/Schedule": ["lib/Support", "lib/Numerics", "lib/Target", "dialects/Plan"],
    "lib/Codegen": ["lib/Support", "lib/Target"],
    "lib/Reference": ["lib/Support", "lib/Numerics", "dialects/Plan"],
    # Where the judge meets the judged: it runs what Schedule emits and asks Reference what it should be.
    "lib/Verify": ["include/planemu", "runtime/CudaAbi.h", "lib/Support", "lib/Numerics", "lib/Target", "lib/Schedule", "lib/Codegen",
                   "lib/Reference", "dialects/Plan"],
    "lib/Compiler": ["include/planc", "lib/Support", "lib/Numerics", "lib/Target", "lib/Bundle", "lib/Import", "lib/Schedule",
                     "lib/Codegen", "passes", "dialects/Plan"],
    # plan-emu is a program of the driver API.
    "lib/Tools": ["include/planc", "include/planrt", "include/planemu", "runtime/CudaAbi.h", "lib/Support", "lib/Numerics", "lib/Target", "lib/Bundle",
                  "lib/Import", "lib/Compiler", "lib/Verify", "lib/Reference", "lib/Schedule", "lib/Codegen", "passes",
                  "dialects/Plan"],
    # The emulator shares the declarations of CUDA's own ABI with the runtime, and nothing else.
    "runtime/emulator": ["include/planemu", "runtime/CudaAbi.h", "runtime/emulator/jit/Jit.h"],
    # A library of its own, with LLVM; the emulator knows its interface.
    "runtime/emulator/jit": [],
    "runtime": ["include/planrt", "include/planemu", "lib/Support", "lib/Bundle", "runtime/CudaAbi.h"],
    "examples": ["include/planrt"],
}
# Folders whose headers may not mention MLIR or LLVM, so that what links them needs neither.
WITHOUT_MLIR = ["lib/Support", "lib/Numerics", "lib/Bundle", "lib/Target", "runtime", "runtime/emulator", "include/planrt", "include/planemu"]
# A library's door; the rest of its headers is private to it.
DOORS = {
    "lib/Import": {"Import.h", "Diagnostics.h"},
    "lib/Schedule": {"Schedule.h"},
    "lib/Codegen": {"Codegen.h"},
    "lib/Reference": {"Reference.h", "Compare.h"},
    "lib/Verify": {"Verify.h"},
    "passes": {"Passes.h", "Pipeline.h"},
}


def folder_of(path):
    return max((f for f in MAY if path == f or path.startswith(f + "/")), key=len, default=None)


def resolve(include, source, root):
    for candidate in (include, "include/" + include, str(source.parent.relative_to(root) / include)):
        if (root / candidate).exists() or candidate.endswith(".inc"):
            return str(pathlib.PurePosixPath(candidate))
    return None


def main(root):
    root, faults = pathlib.Path(root), []
    for source in sorted(p for f in ("include", "lib", "dialects", "passes", "runtime", "examples")
                         for p in (root / f).rglob("*") if p.suffix in (".h", ".c", ".cpp", ".hpp", ".def", ".inc")):
        name = str(source.relative_to(root))
        home = folder_of(name)
        if not home:
            faults.append(f"{name}: lies in no folder of the drawing")
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not match:
                continue
            if home in WITHOUT_MLIR and re.match(r"(mlir|llvm)[/-]", match[1]):
                faults.append(f"{name}:{number}: {home} may not include {match[1]}")
            target = resolve(match[1], source, root)
            there = folder_of(target) if target else None
            if not there or there == home:
                continue
            if not any(target == m or (there == m) for m in MAY[home]):
                faults.append(f"{name}:{number}: {home} may not include {target}")
            elif there in DOORS and pathlib.PurePosixPath(target).name not in DOORS[there] | {"Passes.h.inc"}:
                faults.append(f"{name}:{number}: {target} is private to {there}; its door is "
                              + ", ".join(sorted(DOORS[there])))
    print("\n".join(faults) or "every include follows the drawing")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
