"""lit's configuration: what a test is, where the tools are, which features the machine has."""
import os
import platform
import shutil

import lit.formats

config.name = "planc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".td"]
config.excludes = ["Inputs", "benchmarks", "nightly"]
config.test_source_root = os.path.join(config.source_root, "test")
config.test_exec_root = os.path.join(config.build_root, "test")

bin_dir = os.path.join(config.build_root, "bin")
config.environment["PATH"] = os.pathsep.join([bin_dir, config.llvm_tools_dir, os.environ["PATH"]])
# Compiled kernels are cached inside the build folder: tests share the work and leave the user's cache alone.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.build_root, "cache")
# Programs that tests build with CMake take what this build takes; a machine need not have another compiler.
config.environment.update(CC=config.c_compiler, CXX=config.cxx_compiler, CMAKE_GENERATOR=config.generator)

config.substitutions += [
    ("%source", config.source_root),
    ("%build", config.build_root),
    ("%inputs", os.path.join(config.test_source_root, "Inputs")),
    ("%examples", os.path.join(config.source_root, "examples")),
    ("%python", config.python),
]

if os.path.exists("/usr/local/cuda/bin/ptxas") or shutil.which("ptxas"):
    config.available_features.add("ptxas")
if os.path.exists("/usr/local/cuda/bin/nvcc"):
    config.available_features.add("nvcc")
if os.path.exists("/usr/local/cuda/include/cuda.h"):
    config.available_features.add("cuda-headers")
    if shutil.which("clang++-22") and os.path.exists("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc"):
        config.available_features.add("clang-cuda")
if os.path.exists("/usr/local/cuda/lib64/stubs/libcuda.so"):
    config.available_features.add("cuda-stub")
if os.path.exists("/usr/local/cuda/lib64/libcudart.so") and os.path.exists("/usr/local/cuda/include/cuda_runtime_api.h"):
    config.available_features.add("cudart")
if shutil.which("pkg-config"):
    config.available_features.add("pkg-config")
if shutil.which("llc-22"):
    config.available_features.add("llc")
if shutil.which("clang-format-22") and os.path.exists(os.path.join(config.source_root, ".git")):
    config.available_features.add("clang-format")
if config.mpfr and not config.mpfr.endswith("-NOTFOUND"):
    config.available_features.add("mpfr")
if os.path.exists(os.path.join(bin_dir, "planc-fuzz-ptx")):  # the compiler has libFuzzer
    config.available_features.add("fuzzer")
if os.path.exists("/usr/local/cuda/lib64/libnvJitLink.so.13"):
    config.available_features.add("nvjitlink")
if os.path.exists(os.path.join(config.build_root, "lib", "libplanemu-jit.so")):
    config.available_features.add("planemu-jit")
# What the host's processor can do: some tests run on each instruction set.
try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = set(next((line for line in cpuinfo if line.startswith("flags")), "").split())
except OSError:
    flags = set()
if platform.machine() in ("x86_64", "AMD64"):
    config.available_features.add("x86_64")
if {"avx2", "fma", "f16c", "bmi1", "bmi2"} <= flags:
    config.available_features.add("avx2")
if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
    config.available_features.add("avx512")
