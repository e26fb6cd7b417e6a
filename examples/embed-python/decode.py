#!/usr/bin/env python3
"""A greedy decoder over planrt's C ABI, with the standard library alone.

decode.py BUNDLE WEIGHTS TOKEN,TOKEN,... COUNT [DEVICE]

Feeds the tokens one by one, then prints the COUNT that follow, each the one of the highest logit.
PLANRT names the library, if the loader does not find it by itself.
"""
import ctypes
import os
import sys
from ctypes import byref, c_char_p, c_int32, c_uint32, c_void_p

planrt = ctypes.CDLL(os.environ.get("PLANRT", "libplanrt.so.0"))
planrt.planrt_error_file.restype = planrt.planrt_error_message.restype = c_char_p


def call(name, *arguments):
    """Calls planrt_<name>; the error, its last argument, is raised."""
    function, error, kinds = getattr(planrt, "planrt_" + name), c_void_p(), {bytes: c_char_p, int: c_uint32}
    function.argtypes = [*(kinds.get(type(argument), c_void_p) for argument in arguments), c_void_p]
    if function(*arguments, byref(error)):
        where, what = planrt.planrt_error_file(error), planrt.planrt_error_message(error)
        raise RuntimeError(b": ".join(filter(None, (where, what))).decode())


def make(name, *arguments):
    """Calls a function whose last output is a handle. The process's end frees it."""
    handle = c_void_p()
    call(name, *arguments, byref(handle))
    return handle


if len(sys.argv) not in (5, 6):
    sys.exit(__doc__)
bundle_file, weights_file, prompt, count, *device_name = map(os.fsencode, sys.argv[1:])
try:
    bundle, device = make("bundle_open", bundle_file), make("device_open", *device_name or [b"emulator"], None)
    weights = make("weights_open", bundle, device, weights_file, None)
    session = make("session_open", weights, None)
    step = make("step_open", session, None, None)
    sequence, next_token, generated = c_uint32(), c_int32(), []
    call("sequence_create", session, byref(sequence))
    tokens = [byref(c_int32(int(token))) for token in prompt.split(b",")]
    for token in tokens + [None] * (int(count) - 1):  # None: the one that the sequence has chosen
        call("step_run", step, 1, byref(sequence), token, byref(next_token))
        generated.append(next_token.value)
    print(*generated[len(tokens) - 1:], sep=",")
except (RuntimeError, ValueError) as failure:
    sys.exit(str(failure))
