"""install_tree.py TREE FOLDER...: TREE has just the files that are promised, and none of them names one of the folders."""
import pathlib
import re
import sys

TOOLS = ["plan-emu", "plan-lsp-server", "plan-opt", "plan-run", "planc"]
VERSIONED = ["libplanc.so", "libplanrt.so"]  # each with .0 and .0.MINOR.PATCH
EXPECTED = {
    *(f"bin/{tool}" for tool in TOOLS),
    *(f"LIB/{name}{version}" for name in VERSIONED for version in ("", ".0", ".VERSION")),
    "LIB/libplanemu.so", "LIB/planemu/libcuda.so.1", "LIB/planemu/libcudart.so.13", "LIB/pkgconfig/planrt.pc",
    "LIB/planemu/libcuda.so", "LIB/planemu/libplanemu.so",
    "LIB/cmake/planc/planc-config.cmake", "LIB/cmake/planc/planc-config-version.cmake",
    "LIB/cmake/planc/planc-runtime.cmake", "LIB/cmake/planc/planc-runtime-CONFIG.cmake",
    "LIB/cmake/planc/planc-compiler.cmake", "LIB/cmake/planc/planc-compiler-CONFIG.cmake",
    "include/planc/Compiler.h", "include/planemu/planemu.h", "include/planrt/planrt.h", "include/planrt/planrt.hpp",
}


def general(path):
    path = re.sub(r"^lib(64|/[^/]+-linux-gnu)?/", "LIB/", path)
    path = re.sub(r"\.so\.\d+\.\d+\.\d+$", ".so.VERSION", path)
    return re.sub(r"-(release|debug|relwithdebinfo|minsizerel|noconfig)\.cmake$", "-CONFIG.cmake", path)


# What needs LLVM is built where there is a clang of its version.
OPTIONAL = {"LIB/libplanemu-jit.so"}

tree, folders = pathlib.Path(sys.argv[1]), sys.argv[2:]
files = sorted(p for p in tree.rglob("*") if not p.is_dir())
found = {general(str(p.relative_to(tree))) for p in files}
faults = [f"is missing: {name}" for name in sorted(EXPECTED - found)]
faults += [f"is not expected: {name}" for name in sorted(found - EXPECTED - OPTIONAL)]
for path in files:
    if not path.exists():
        faults.append(f"leads nowhere: {path.relative_to(tree)}")
        continue
    content = path.read_bytes()
    faults += [f"names {folder}: {path.relative_to(tree)}" for folder in folders if folder.encode() in content]
sys.exit("\n".join(faults) or 0)
