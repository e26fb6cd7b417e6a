"""Breaks a good bundle in one way at a time and checks that every reader says which part is wrong.

usage: broken-bundles.py BUNDLE PLANRT_LIBRARY SCRATCH [--show]

BUNDLE is planrt-make-sample's two.bundle. `planc inspect`, plan-run and planrt_bundle_open read each broken one: exit 1
(PLANRT_ERR_INPUT), no signal, and the same message, which has to begin with what stands beside the case below.
"""
import copy
import ctypes
import ctypes.util
import json
import pathlib
import struct
import subprocess
import sys

HUGE = 1 << 63
MAX = (1 << 64) - 1
XXHASH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
XXHASH.XXH3_64bits.restype = ctypes.c_uint64
XXHASH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3(data):
    return XXHASH.XXH3_64bits(bytes(data), len(data))


def aligned(data):
    return data + bytes(-len(data) % 64)


class Parts:
    """A bundle taken apart: header fields, the manifest as an object or as bytes, the sections' bytes."""

    def __init__(self, content):
        self.magic, self.version, self.start, length = struct.unpack_from("<8sIIQ", content)
        self.manifest = json.loads(content[64:64 + length])
        first = len(aligned(content[:64 + length]))
        self.sections = [content[first + s["offset"]:first + s["offset"] + s["bytes"]] for s in self.manifest["sections"]]
        self.text = None        # bytes instead of the manifest
        self.fields = {}        # offset of a header field -> its value, before the header is sealed
        self.after = lambda content: content

    def pack(self):
        text = self.text if self.text is not None else json.dumps(self.manifest, separators=(",", ":")).encode()
        body = aligned(bytes(64) + text)[64:]
        for number, section in enumerate(self.sections):
            body = (aligned(bytes(64) + body)[64:] if number else body) + section
        content = bytearray(64) + body
        struct.pack_into("<8sIIQQQ", content, 0, self.magic, self.version, 64, len(text), xxh3(text), len(content))
        for offset, value in self.fields.items():
            struct.pack_into("<Q" if offset >= 16 else "<I", content, offset, value)
        struct.pack_into("<Q", content, 56, xxh3(content[:56]))
        return self.after(bytes(content))


CASES = []


def case(expected):
    """A function that breaks `p` (the parts), `m` (its manifest) and what that holds, and what has to be said."""

    def add(function):
        CASES.append((function.__name__, function, expected))
        return function

    return add


def field(name, expected, path, value):
    """A case that sets one value of the manifest."""

    def change(p):
        at = p.manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    CASES.append((name, change, expected))


def text(name, expected, change):
    """A case that edits the manifest's text."""

    def edit(p):
        p.text = change(json.dumps(p.manifest, separators=(",", ":"))).encode("utf-8", "surrogateescape")

    CASES.append((name, edit, expected))


def raw(name, expected, change):
    """A case that edits the file."""

    def edit(p):
        p.after = change

    CASES.append((name, edit, expected))


def header(name, expected, offset, value):
    def edit(p):
        p.fields[offset] = value

    CASES.append((name, edit, expected))


# The file, front to back: each part cut off, each length and checksum wrong.
raw("empty", "has 0 bytes, a bundle has at least 64", lambda c: b"")
raw("cut_in_header", "has 63 bytes, a bundle has at least 64", lambda c: c[:63])
raw("cut_after_header", "truncated: the header says ", lambda c: c[:64])
raw("cut_in_manifest", "truncated: the header says ", lambda c: c[:500])
raw("cut_in_first_section", "truncated: the header says ", lambda c: c[:-9000])
raw("cut_in_last_section", "truncated: the header says ", lambda c: c[:-1])
raw("too_long", "too long: the header says ", lambda c: c + b"\0")
raw("other_file", 'is not a bundle: the first 8 bytes are not "planbndl"', lambda c: b"\x7fELF" + c[4:])
raw("header_bit", "header is damaged: its checksum is ", lambda c: c[:20] + bytes([c[20] ^ 1]) + c[21:])
raw("manifest_bit", "manifest is damaged: its checksum is ", lambda c: c[:100] + bytes([c[100] ^ 1]) + c[101:])
raw("section_bit", "section 2 (plan_ir) is damaged: its checksum is ", lambda c: c[:-1] + bytes([c[-1] ^ 1]))
header("version_too_new", "has bundle format version 4294967295, this program reads versions 1 to 1", 8, 0xFFFFFFFF)
header("version_zero", "has bundle format version 0, this program reads versions 1 to 1", 8, 0)
header("manifest_elsewhere", "header is not one of format version 1", 12, 128)
header("reserved_not_zero", "header is not one of format version 1", 40, 1)
header("manifest_overflows", f"manifest needs {MAX} bytes at offset 64, but the file ends at ", 16, MAX)
header("manifest_past_the_end", "manifest needs 1000000 bytes at offset 64, but the file ends at ", 16, 1000000)
header("manifest_empty", "manifest is damaged: its checksum is ", 16, 0)
header("file_size_huge", f"truncated: the header says {HUGE} bytes, but the file ends at ", 32, HUGE)
field("manifest_too_new", "header has format version 1, but its manifest 2", ["format_version"], 2)

# The manifest's text.
text("not_json", "manifest: not JSON at byte 0", lambda t: "program" + t)
text("cut_json", "manifest: not JSON at byte ", lambda t: t[:-1])
text("no_text", "manifest: not JSON at byte 0", lambda t: "")
text("after_json", "manifest: not JSON at byte ", lambda t: t + "{}")
text("list", "manifest at /: expected an object", lambda t: "[" + t + "]")
text("nul", "manifest: not JSON at byte 10: a NUL byte", lambda t: t[:10] + "\0" + t[10:])
text("not_utf8", "manifest: not JSON at byte ", lambda t: t.replace("decode", "\udcff", 1))
text("deep", "manifest: nested deeper than 12 levels", lambda t: "[" * 100000)
text("key_twice", 'manifest: key "model" occurs twice', lambda t: '{"model":1,' + t[1:])
text("number_of_400_digits", "manifest: not JSON at byte ", lambda t: t.replace('"vocab":64', '"vocab":' + "9" * 400, 1))


# The manifest's fields: missing, unknown, of another type, out of range.
@case('manifest at /: key "kernels" is missing')
def missing_key(p):
    del p.manifest["kernels"]


@case('manifest at /kernels/1/targets/sm_80: key "grid" is missing')
def missing_inner_key(p):
    del p.manifest["kernels"][1]["targets"]["sm_80"]["grid"]


@case('manifest at /: unknown key "extra"')
def unknown_key(p):
    p.manifest["extra"] = 1


field("string_for_list", "manifest at /programs: expected a list", ["programs"], "decode")
field("list_for_object", "manifest at /model: expected an object", ["model"], [])
field("number_for_string", "manifest at /kernels/0/name: expected a string", ["kernels", 0, "name"], 7)
field("negative", "manifest at /weights/0/bytes: expected a non-negative integer", ["weights", 0, "bytes"], -1)
field("fraction", "manifest at /weights/0/bytes: expected a non-negative integer", ["weights", 0, "bytes"], 1.5)
field("bool_for_number", "manifest at /weights/0/bytes: expected a non-negative integer", ["weights", 0, "bytes"], True)
field("too_wide", "manifest at /programs/0/rows: 4294967296 does not fit, at most 4294967295 does",
      ["programs", 0, "rows"], 1 << 32)
field("unknown_dtype", "manifest at /states/0/dtype: expected one of bf16, f32", ["states", 0, "dtype"], "f64")
field("two_extents", "manifest at /kernels/0/targets/sm_80/grid: expected three numbers",
      ["kernels", 0, "targets", "sm_80", "grid"], [1, 1])

# Sections.
field("section_overflows", f"section 1 (cache_sum.sm_80.ptx) needs {MAX} bytes at offset ", ["sections", 1, "bytes"], MAX)
field("section_offset_overflows", "section 1 (cache_sum.sm_80.ptx) needs 4859 bytes at offset ",
      ["sections", 1, "offset"], MAX - 63)
field("section_past_the_end", "section 2 (plan_ir) needs 5 bytes at offset ", ["sections", 2, "bytes"], 5)
field("section_overlaps", "section 1 (cache_sum.sm_80.ptx) at offset ", ["sections", 1, "offset"], 0)
field("section_unaligned", "section 1 (cache_sum.sm_80.ptx) is at offset ", ["sections", 1, "offset"], 4865)
field("section_checksum", "section 0 (sum_state.sm_80.ptx) is damaged: its checksum is ",
      ["sections", 0, "xxh3"], "0123456789abcdef")
field("section_twice", 'section "plan_ir" occurs twice', ["sections", 0, "name"], "plan_ir")
field("section_without_name", "a section has no name", ["sections", 0, "name"], "")


@case("bytes ")
def padding_not_zero(p):
    p.sections[0] += b"\1"


@case("the last section ends at ")
def bytes_after_sections(p):
    p.sections.append(b"more")


# The model and the targets.
field("no_vocabulary", "model has a vocabulary of 0 and a context of 64", ["model", "vocab"], 0)
field("context_huge", "model has a vocabulary of 64 and a context of 9223372036854775807, expected 1 to 2147483647", ["model", "max_context"], HUGE - 1)
field("vocabulary_huge", "model has a vocabulary of 9223372036854775807 and a context of 64, expected 1 to 2147483647", ["model", "vocab"], HUGE - 1)
field("kv_block_odd", "model has a kv_block of 3, expected a power of two", ["model", "kv_block"], 3)
field("kv_block_huge", f"model has a kv_block of {1 << 62}, expected a power of two up to 4096", ["model", "kv_block"], 1 << 62)
field("no_target", "the bundle is for no target", ["targets"], [])
field("target_twice", 'target "sm_80" occurs twice', ["targets"], [{"name": "sm_80", "sm": 80, "product": "a100"}] * 2)
field("target_disagrees", 'target "sm_80" has sm 90', ["targets", 0, "sm"], 90)

# Kernels.
field("kernel_twice", 'kernel "sum_state" occurs twice', ["kernels", 1, "name"], "sum_state")
field("kernel_without_name", "a kernel has no name", ["kernels", 1, "name"], "")
field("no_image", 'kernel "sum_state" has no image for target sm_80', ["kernels", 0, "targets"], {})
field("no_section", 'kernel "sum_state" on sm_80 needs section "none", which is not in the bundle',
      ["kernels", 0, "targets", "sm_80", "ptx"], "none")
field("no_cubin_section", 'kernel "sum_state" on sm_80 needs section "none", which is not in the bundle',
      ["kernels", 0, "targets", "sm_80", "cubin"], "none")
field("ptx_bytes", 'kernel "sum_state" on sm_80 has 1 bytes of PTX, but its section 4859',
      ["kernels", 0, "targets", "sm_80", "ptx_bytes"], 1)
field("grid_zero", 'kernel "sum_state" on sm_80 has grid [2, 0, 1]',
      ["kernels", 0, "targets", "sm_80", "grid"], [2, 0, 1])
field("grid_huge", 'kernel "sum_state" on sm_80 has grid [2, 4294967295, 1]',
      ["kernels", 0, "targets", "sm_80", "grid"], [2, 4294967295, 1])
field("block_huge", 'kernel "sum_state" on sm_80 has grid [2, 1, 1] and block [4294967295, 1, 1]',
      ["kernels", 0, "targets", "sm_80", "block"], [4294967295, 1, 1])
field("block_of_2048", 'kernel "sum_state" on sm_80 has 2048 threads a block, at most 1024 are possible',
      ["kernels", 0, "targets", "sm_80", "block"], [64, 32, 1])
field("shared_huge", 'kernel "sum_state" on sm_80 has 4294967295 bytes of shared memory, at most 1048576 are possible',
      ["kernels", 0, "targets", "sm_80", "shared_bytes"], 0xFFFFFFFF)
field("scratch_huge", f'kernel "cache_sum" on sm_80 has {MAX} bytes of scratch, at most {1 << 42} are possible',
      ["kernels", 1, "targets", "sm_80", "scratch_bytes"], MAX)
field("scratch_unwanted", 'kernel "sum_state" on sm_80 has 8 bytes of scratch, but 0 parameters for it',
      ["kernels", 0, "targets", "sm_80", "scratch_bytes"], 8)
field("entry_empty", 'kernel "sum_state" on sm_80 has no entry', ["kernels", 0, "targets", "sm_80", "entry"], "")
field("entry_with_nul", "manifest at /kernels/0/targets/sm_80/entry: a string with a NUL byte", ["kernels", 0, "targets", "sm_80", "entry"], "sum_state\0x")
field("parameters_513", 'kernel "sum_state" has 513 parameters, at most 512 are possible', ["kernels", 0, "params"],
      [{"kind": "weight", "dtype": "bf16", "shape": [64], "written": False}] * 513)

# Weights and states.
field("weight_twice", 'weight "embed" occurs twice', ["weights", 1, "name"], "embed")
field("weight_format", 'weight "l0.w" has the unknown format "q4_k"', ["weights", 1, "format"], "q4_k")
field("weight_layout", 'weight "l0.w" has the unknown layout "tiled"', ["weights", 1, "layout"], "tiled")
field("weight_bytes", 'weight "l0.w" has 129 bytes, but bf16 [64] are 128', ["weights", 1, "bytes"], 129)
field("weight_huge", 'weight "l0.w" has the impossible shape [9223372036854775807]', ["weights", 1, "shape"], [HUGE - 1])
field("weight_overflows", 'weight "l0.w" has the impossible shape [4294967296, 4294967296]',
      ["weights", 1, "shape"], [1 << 32, 1 << 32])
field("weight_empty", 'weight "l0.w" has the impossible shape [0]', ["weights", 1, "shape"], [0])
field("scale_bytes", 'weight "l0.experts" has 17 bytes of scales', ["weights", 2, "scale_bytes"], 17)
field("part_outside", 'weight "l0.w", data: part "m.layers.0.w" has offset 129 in 128 bytes', ["weights", 1, "parts", 0, "offset"], 129)
field("part_overflows", 'weight "l0.w", data: part "m.layers.0.w" has offset 18446744073709551615 in 128 bytes',
      ["weights", 1, "parts", 0, "offset"], MAX)
field("part_stride_huge", f'weight "l0.experts", data: part "m.layers.0.experts.{{e:0..1}}.gate.weight" has a stride of {HUGE} in 65536 bytes',
      ["weights", 2, "parts", 0, "strides"], [HUGE])
field("parts_overlap", 'weight "l0.experts", data: part "m.layers.0.experts.{e:0..1}.', ["weights", 2, "parts", 1, "offset"], 0)
field("part_without_strides", 'weight "l0.experts", data: part "m.layers.0.experts.{e:0..1}.gate.weight" has 1 indices, but 0 strides',
      ["weights", 2, "parts", 0, "strides"], [])
field("pattern_huge", 'weight "l0.w", data: pattern "m.{e:0..99999999999}" needs indices like {e:0..255}',
      ["weights", 1, "parts", 0, "pattern"], "m.{e:0..99999999999}")
field("pattern_product_huge", 'weight "l0.w", data: pattern ', ["weights", 1, "parts", 0, "pattern"],
      "m.{a:0..99999}.{b:0..99999}")
field("pattern_open", 'weight "l0.w", data: pattern "m.{e" needs indices like {e:0..255}',
      ["weights", 1, "parts", 0, "pattern"], "m.{e")
field("state_twice", 'state "l0.acc" occurs twice', ["states", 1, "name"], "l0.acc")
field("state_kind", 'state "l0.acc" is of kind "heap", expected slots or paged', ["states", 0, "kind"], "heap")
field("state_bytes", f'state "l0.acc" has {HUGE} bytes, but f32 [64] are 256', ["states", 0, "bytes"], HUGE)
field("state_blocks", 'state "l0.k" has blocks of shape [8, 1, 1], expected 16 positions', ["states", 1, "shape"], [8, 1, 1])

# Programs: the launch list points outside, buffers lie outside.
PROGRAM = ["programs", 0]
LAUNCH = PROGRAM + ["launch_list"]


@case('program "decode_n2" has no name or occurs twice')
def program_twice(p):
    p.manifest["programs"].append(copy.deepcopy(p.manifest["programs"][0]))


field("no_program", "the bundle has no program", ["programs"], [])
field("rows_zero", "program decode_n2: has 0 rows", PROGRAM + ["rows"], 0)
field("rows_huge", "program decode_n2: has 4294967295 rows", PROGRAM + ["rows"], 0xFFFFFFFF)
field("groups_huge", "program decode_n2: has 5 nodes, 4294967295 groups and 2 launches, but its launch list 5, 5 and 2",
      PROGRAM + ["groups"], 0xFFFFFFFF)
field("group_order", "program decode_n2: launch list has group 7 where 1 comes next", LAUNCH + [1, "group"], 7)
field("kernel_unknown", 'program decode_n2: group 1 (rule_sum_state): starts kernel "none", which is not in the bundle',
      LAUNCH + [1, "kernel"], "none")
field("kernel_and_note", "program decode_n2: group 1 (rule_sum_state): needs one of a kernel, host ops and a note",
      LAUNCH + [1, "note"], "nothing to do")
field("where_unknown", 'program decode_n2: group 1 (rule_sum_state): is on "moon", expected device or host',
      LAUNCH + [1, "where"], "moon")
field("arguments_missing", 'program decode_n2: group 1 (rule_sum_state): passes 0 arguments, but kernel "sum_state" has 6',
      LAUNCH + [1, "args"], [])
field("argument_kind", 'program decode_n2: group 1 (rule_sum_state): argument 0: passes a weight, but kernel "sum_state" expects a buffer',
      LAUNCH + [1, "args", 0, "kind"], "weight")
field("buffer_unknown", 'program decode_n2: group 1 (rule_sum_state): argument 0: passes buffer "none", which is not in the bundle',
      LAUNCH + [1, "args", 0, "name"], "none")
field("weight_unknown", 'program decode_n2: group 1 (rule_sum_state): argument 3: passes weight "none", which is not in the bundle',
      LAUNCH + [1, "args", 3, "name"], "none")
field("weight_on_host", 'program decode_n2: group 1 (rule_sum_state): argument 3: passes the data of weight "embed", which is on the host',
      LAUNCH + [1, "args", 3, "name"], "embed")
field("weight_scales", 'program decode_n2: group 1 (rule_sum_state): argument 3: passes the scales of weight "l0.w", which has none',
      LAUNCH + [1, "args", 3, "part"], "scales")
field("state_unknown", 'program decode_n2: group 1 (rule_sum_state): argument 4: passes state "none", which is not in the bundle',
      LAUNCH + [1, "args", 4, "name"], "none")
field("state_of_other_size", 'program decode_n2: group 1 (rule_sum_state): argument 4: state "l0.k" is bf16 [16, 1, 1], but kernel "sum_state" expects f32 [64]',
      LAUNCH + [1, "args", 4, "name"], "l0.k")
field("input_unknown", 'program decode_n2: group 1 (rule_sum_state): argument 1: passes input "none", which is not in the bundle',
      LAUNCH + [1, "args", 1, "name"], "none")
field("input_of_other_size", 'program decode_n2: group 1 (rule_sum_state): argument 1: step input "positions" is i32 [3, 2], but kernel "sum_state" expects i32 [2]',
      LAUNCH + [1, "args", 1, "name"], "positions")
field("read_too_late", 'program decode_n2: group 3 (rule_cache_sum): argument 0: reads buffer "l0.y", which lives from group 1 to 1',
      PROGRAM + ["buffers", 1, "last_use"], 1)
field("buffer_twice", 'program decode_n2: buffer "embed.h" has no name or occurs twice', PROGRAM + ["buffers", 1, "edge"], "embed.h")
field("buffer_outside", 'program decode_n2: buffer "head.logits" needs 256 bytes at offset 2048 of a workspace of 2048',
      PROGRAM + ["buffers", 2, "offset"], 2048)
field("buffer_overflows", f'program decode_n2: buffer "head.logits" needs 256 bytes at offset {MAX - 255} of a workspace of 2048',
      PROGRAM + ["buffers", 2, "offset"], MAX - 255)
field("buffer_unaligned", 'program decode_n2: buffer "head.logits" is at offset 1025, not a multiple of 256',
      PROGRAM + ["buffers", 2, "offset"], 1025)
field("buffers_overlap", 'program decode_n2: buffers "l0.y" (groups 1 to 3) and "head.logits" (groups 3 to 4) share bytes 256 to 512',
      PROGRAM + ["buffers", 2, "offset"], 256)
field("buffers_overlap_unshared", 'program decode_n2: buffers "l0.y" (groups 1 to 3) and "head.logits" (groups 3 to 4) share bytes 256 to 512 of the unshared workspace',
      PROGRAM + ["buffers", 2, "unshared_offset"], 256)
field("buffer_lives_on", 'program decode_n2: buffer "head.logits" lives from group 3 to 5 of 5', PROGRAM + ["buffers", 2, "last_use"], 5)
field("buffer_bytes", 'program decode_n2: buffer "head.logits" has 255 bytes, but bf16 [2, 64] are 256', PROGRAM + ["buffers", 2, "bytes"], 255)
field("workspace_huge", f"program decode_n2: has a workspace of {HUGE} bytes, at most {1 << 42} are possible", PROGRAM + ["workspace", "bytes"], HUGE)
field("scratch_small", 'program decode_n2: group 3 (rule_cache_sum): argument 7: kernel "cache_sum" on sm_80 needs 8 bytes of scratch',
      PROGRAM + ["workspace", "scratch_bytes"], 0)
field("input_shape", "program decode_n2: step input \"token_ids\" is i32 [3], expected i32 [2]", PROGRAM + ["inputs", 0, "shape"], [3])
field("input_name", 'program decode_n2: unknown step input "temperature"', PROGRAM + ["inputs", 0, "name"], "temperature")
field("host_op_unknown", 'program decode_n2: group 0 (embed): host op "sort" of node "embed" is not known', LAUNCH + [0, "host", 0, "op"], "sort")
field("host_weight_unknown", 'program decode_n2: group 0 (embed): host op "embed" of node "embed" names a weight or a buffer that is not in the bundle',
      LAUNCH + [0, "host", 0, "weight"], "none")
field("node_twice", 'program decode_n2: node "embed" is in two groups', LAUNCH + [1, "nodes"], ["embed"])

field("dim_with_nul", "manifest at /model/dims: a string with a NUL byte", ["model", "dims"], {"hid\0den": 64})

# Strings with a NUL byte, where a C interface would cut them.
field("program_with_nul", "manifest at /programs/0/name: a string with a NUL byte", ["programs", 0, "name"], "decode\0n2")
field("weight_with_nul", "manifest at /weights/1/name: a string with a NUL byte", ["weights", 1, "name"], "l0\0.w")


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stderr.decode(errors="replace").strip()


def planrt(library):
    lib = ctypes.CDLL(library)
    lib.planrt_error_message.restype = ctypes.c_char_p

    def open_bundle(path):
        bundle, error = ctypes.c_void_p(), ctypes.c_void_p()
        status = lib.planrt_bundle_open(str(path).encode(), ctypes.byref(bundle), ctypes.byref(error))
        message = lib.planrt_error_message(error).decode(errors="replace") if error else ""
        lib.planrt_error_free(error)
        lib.planrt_bundle_free(bundle)
        return status, message

    return open_bundle


def main(bundle, library, scratch, *flags):
    content = pathlib.Path(bundle).read_bytes()
    scratch = pathlib.Path(scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    open_bundle, wrong = planrt(library), 0
    good = scratch / "good.bundle"
    good.write_bytes(Parts(content).pack())
    assert open_bundle(good)[0] == 0 and run(["planc", "inspect", good])[0] == 0, "the bundle is not good to begin with"
    for name, change, expected in CASES:
        parts, path = Parts(content), scratch / f"{name}.bundle"
        change(parts)
        path.write_bytes(parts.pack())
        status, message = open_bundle(path)
        told = f"{path}: error: {message}"
        answers = {"planrt_bundle_open": (status, message), "planc inspect": run(["planc", "inspect", path]),
                   "plan-run": run(["plan-run", path, "--weights", "random:1", "--tokens", "1"])}
        if "--show" in flags:
            print(f"{name}: {status} {message}")
        bad = [f"{who}: {code} {said}" for who, (code, said) in answers.items()
               if code != 1 or not (said == message or told in said)]
        if bad or not message.startswith(expected):
            wrong += 1
            print(f"{name}: expected {expected}", *bad or [f"said {message}"], sep="\n  ")
    print(f"{len(CASES)} bundles, {wrong} not refused as expected")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
