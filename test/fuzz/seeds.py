"""Makes what the fuzz targets start from, out of inputs that the tests have anyway.

usage: seeds.py ROOT SAMPLE_TOOL OUT

Writes the folders OUT/{ptx,ptx-run,bundle,manifest,safetensors,plan} and OUT/ptx.dict. SAMPLE_TOOL is
planrt-make-sample. The same files each time.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# A seed that needs more is left out: a mutant's cost grows with its length, not with what is new in it.
MOST_PTX = 12000


def blocks(text):
    """The text as (head, body) of each function and (piece, None) for what is between."""
    pieces, start, at = [], 0, 0
    for match in re.finditer(r"(?m)^[ \t]*(\.(visible|weak|extern)\s+)*\.(entry|func)\b", text):
        if match.start() < at:
            continue
        brace, semicolon = text.find("{", match.end()), text.find(";", match.end())
        if brace < 0 or 0 <= semicolon < brace:
            continue  # a declaration
        depth, at = 0, brace
        while at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        pieces += [(text[start:match.start()], None), (text[match.start():brace], text[brace:at])]
        start = at
    return pieces + [(text[start:], None)]


def single_kernels(text):
    """The module, one kernel at a time, without comments, and with its functions only where it calls any."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"(?m)^\s*\.(loc|file|pragma)\b[^\n]*\n", "", text)
    text = re.sub(r"\n\s*\n+", "\n", text)
    pieces = blocks(text)
    for index, (head, body) in enumerate(pieces):
        if body is None or ".entry" not in head:
            continue
        calls = "call" in body
        yield "".join(h + (b or "") for i, (h, b) in enumerate(pieces)
                      if b is None or i == index or (calls and ".entry" not in h))


def ptx_seeds(root):
    for folder in ("test/runtime/emulator", "test/Inputs/emulator", "test/Inputs/runtime", "test/lib/Tools/Inputs"):
        for path in sorted((root / folder).rglob("*.ptx")):
            for number, module in enumerate(single_kernels(path.read_text())):
                if len(module) <= MOST_PTX:
                    yield f"{path.parent.name}-{path.stem}-{number}", module.lstrip()


def dictionary(root):
    emulator = root / "runtime/emulator"
    words = set()
    for name in re.findall(r'PLANEMU_INSTRUCTION\("([a-z0-9]+)"', (emulator / "ops/Instructions.def").read_text()):
        words.add(name)
    for path in sorted(emulator.rglob("*.cpp")) + [emulator / "Ptx.h"]:
        words.update(re.findall(r'"([.%][a-z0-9_:.]+)"', path.read_text()))
        words.update("." + word for word in re.findall(r'X\([A-Za-z0-9]+, "([a-z0-9]+)"', path.read_text()))
    return "".join(f'"{word}"\n' for word in sorted(words))


def safetensors(tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def as_compiled(manifest):
    """What planc writes and the sample has not: a second target, cubins and their figures, sums of several levels, a
    second program."""
    manifest["targets"].append({"name": "sm_90", "sm": 90, "product": "h200"})
    sections, end = manifest["sections"], sum(manifest["sections"][-1][key] for key in ("offset", "bytes"))
    for kernel in manifest["kernels"]:
        levels = [{"kind": "product", "terms": 1, "span": 0}, {"kind": "tree", "terms": 64, "span": 0}]
        kernel["arithmetic"] = [{"op": "rms_norm", "parts": [
            {"name": name, "levels": levels if name == "squares" else [], "units": units, "absolute": None, "source": ""}
            for name, units in (("squares", 0), ("mean", 2), ("rsqrt", 4), ("scale", 3))]}]
        first = kernel["targets"]["sm_80"]
        kernel["targets"]["sm_90"] = image = dict(first, registers=30, stack_bytes=0, spill_bytes=0, code_bytes=1920)
        for kind in ("ptx", "cubin"):
            end = (end + 63) // 64 * 64
            image[kind] = f"{kernel['name']}.sm_90.{kind}"
            sections.append(dict(sections[0], name=image[kind], offset=end, bytes=first["ptx_bytes"]))
            end += first["ptx_bytes"]
    manifest["programs"].append(dict(manifest["programs"][0], name="again", mode="multi_seq"))
    return manifest


def cut_plan(plan, config, keep):
    """The plan with only the layers `keep`, renumbered: each takes the hidden state of the one before it."""
    nodes = [n for n in plan["nodes"] if n["layer"] is None or n["layer"] in keep]
    kept = {n["order"] for n in nodes}
    stream = [n["order"] for n in plan["nodes"] if n["id"] == "embed.embed" or n["id"].endswith("moe_ffn.add")]
    ids = {e["from"]: e["id"] for e in plan["edges"] if e["from"] in stream}
    edges = []
    for edge in plan["edges"]:
        if edge["to"] in kept:
            edge = dict(edge)
            if edge["from"] not in kept:
                edge["from"] = max(s for s in stream if s in kept and s < edge["from"])
                edge["id"] = ids[edge["from"]]
            edges.append(edge)
    order = {old: new for new, old in enumerate(sorted(kept))}
    groups = [{**g, "nodes": [n for n in g["nodes"] if n in kept]} for g in plan["groups"] if kept & set(g["nodes"])]
    group = {g["id"]: new for new, g in enumerate(groups)}
    layer = {old: new for new, old in enumerate(keep)}

    def renamed(text):
        return re.sub(r"^l(\d+)\.", lambda m: f"l{layer[int(m[1])]}.", text)

    result = dict(plan)
    result["layers"] = [{**l, "index": layer[l["index"]], "blocks": [renamed(b) for b in l["blocks"]]}
                        for l in plan["layers"] if l["index"] in keep]
    result["nodes"] = [{**n, "id": renamed(n["id"]), "order": order[n["order"]], "group": group[n["group"]],
                        "block": n["block"] and renamed(n["block"]),
                        "layer": None if n["layer"] is None else layer[n["layer"]]} for n in nodes]
    result["edges"] = [{**e, "id": renamed(e["id"]), "from": order[e["from"]], "to": order[e["to"]]} for e in edges]
    result["groups"] = [{**g, "id": group[g["id"]], "nodes": [order[n] for n in g["nodes"]]} for g in groups]
    text = dict(config["text_config"])
    text["layer_types"] = [text["layer_types"][k] for k in keep]
    text["num_hidden_layers"] = len(keep)
    quantization = dict(config["quantization_config"], modules_to_not_convert=[])
    return result, {**config, "text_config": text, "quantization_config": quantization}


def plan_seeds(root):
    config = json.loads((root / "examples/models/qwen3.6-tiny/config.json").read_text())
    for name in ("decode-n1", "multi_seq-n2"):
        plan = json.loads((root / f"examples/plans/qwen3.6-tiny/{name}.json").read_text())
        for keep in ([0], [3], [0, 3]):
            cut = cut_plan(plan, config, keep)
            yield f"{name}-{''.join(map(str, keep))}", cut
    yield "whole", (plan, config)


def main(root, tool, out):
    def write(folder, name, content):
        (out / folder).mkdir(parents=True, exist_ok=True)
        (out / folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    for name, module in ptx_seeds(root):
        write("ptx", name, module)
        write("ptx-run", name, f"//launch 2 64 1024 {sum(map(ord, name)) % 64} 0\n{module}")
    (out / "ptx.dict").write_text(dictionary(root))

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, folder], check=True)
        for path in sorted(pathlib.Path(folder).glob("*.bundle")):
            content = path.read_bytes()
            length = struct.unpack_from("<Q", content, 16)[0]
            write("bundle", path.stem, content)
            write("manifest", path.stem, content[64:64 + length])
            write("manifest", path.stem + "-as-compiled", json.dumps(as_compiled(json.loads(content[64:64 + length]))))
        write("safetensors", "sample", (pathlib.Path(folder) / "model.safetensors").read_bytes())

    write("safetensors", "none", safetensors([]))
    write("safetensors", "two", safetensors([("a", "F32", [2, 2], bytes(16)), ("b", "I8", [3], b"abc")], {"format": "pt"}))
    write("safetensors", "empty-dims", safetensors([("a", "BF16", [0, 7], b""), ("s", "F64", [], bytes(8))]))
    write("safetensors", "fp8", safetensors([("w", "F8_E4M3", [4, 4], bytes(16)), ("w_scale_inv", "F32", [1, 1], bytes(4))]))

    for name, (plan, config) in plan_seeds(root):
        compact = [json.dumps(part, separators=(",", ":")) for part in (plan, config)]
        write("plan", name, "\n//config\n".join(compact))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
