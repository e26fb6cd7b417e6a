#!/usr/bin/env python3
"""A greedy decoder over planrt's C ABI, with the standard library alone.

decode.py BUNDLE WEIGHTS TOKEN,TOKEN,... COUNT [DEVICE]

Feeds the tokens one by one, then prints the COUNT that follow, each the one of the highest logit.
PLANRT names the library, if the loader does not find it by itself.
"""
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint32, c_void_p

planrt = ctypes.CDLL(os.environ.get("PLANRT", "libplanrt.so.0"))
for name in ("message", "file"):
    text = getattr(planrt, f"planrt_error_{name}")
    text.argtypes, text.restype = [c_void_p], c_char_p


def call(noun_verb, types, *arguments):
    """Calls planrt_<noun>_<verb>; `types` leaves out the error, which is raised."""
    function, error = getattr(planrt, "planrt_" + noun_verb), c_void_p()
    function.argtypes = [*types, POINTER(c_void_p)]
    if function(*arguments, byref(error)):
        where = planrt.planrt_error_file(error).decode()
        raise RuntimeError((where + ": " if where else "") + planrt.planrt_error_message(error).decode())


def make(noun_verb, *arguments):
    """Calls a function whose last output is a handle. The process's end frees it."""
    handle = c_void_p()
    types = [c_char_p if isinstance(a, bytes) else c_void_p for a in arguments]
    call(noun_verb, [*types, POINTER(c_void_p)], *arguments, byref(handle))
    return handle


def main(bundle_file, weights_file, prompt, count, device_name="emulator"):
    bundle = make("bundle_open", os.fsencode(bundle_file))
    device = make("device_open", device_name.encode(), None)
    weights = make("weights_open", bundle, device, os.fsencode(weights_file), None)
    session = make("session_open", weights, None)
    step = make("step_open", session, None, None)
    sequence, next_token, generated = c_uint32(), c_int32(), []
    call("sequence_create", [c_void_p, POINTER(c_uint32)], session, byref(sequence))
    tokens = [int(token) for token in prompt.split(",")]
    for token in tokens + [None] * (int(count) - 1):
        given = None if token is None else byref(c_int32(token))  # None: the one it has chosen
        call("step_run", [c_void_p, c_uint32, POINTER(c_uint32), POINTER(c_int32), POINTER(c_int32)],
             step, 1, byref(sequence), given, byref(next_token))
        generated.append(next_token.value)
    print(*generated[len(tokens) - 1:], sep=",")


if len(sys.argv) not in (5, 6):
    sys.exit(__doc__)
try:
    main(*sys.argv[1:])
except (RuntimeError, ValueError) as failure:
    sys.exit(str(failure))
