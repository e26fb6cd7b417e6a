"""plan-run-counters.py FOLDER: files of counters that differ in one thing each."""
import copy
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])


def launch(index, kernel, group, warp):
    return {
        "index": index, "kernel": kernel, "label": f'group {group} "rule" (nodes n{group})',
        "grid": [4, 1, 1], "block": [128, 1, 1],
        "counters": {"warp_instructions": warp, "global": {"load": {"requests": 3, "bytes": 384}},
                     "tensors": {f'edge "e{group}"': {"load_bytes": 384, "unique_load_sectors": 12}}},
    }


def write(name, content):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


base = {"version": 1, "launches": [launch(0, "k0", 1, 100), launch(1, "k1", 2, 50), launch(2, "k0", 3, 100)]}
write("a.json", base)

changed = copy.deepcopy(base)
for at in (0, 2):
    changed["launches"][at]["counters"]["warp_instructions"] = 90
del changed["launches"][1]["counters"]["tensors"]
changed["launches"][1]["counters"]["barriers"] = 2
changed["launches"][1]["grid"][0] = 5
write("b.json", changed)

# The same launches in another order are the same.
write("order.json", {"version": 1, "launches": base["launches"][::-1]})
write("fewer.json", {"version": 1, "launches": base["launches"][1:]})

write("text.json", "{\"version\": 1,")
write("other.json", {"launches": 3})
write("newer.json", {"version": 2, "launches": []})
write("nameless.json", {"version": 1, "launches": [{"label": "x", "counters": {}}]})
broken = copy.deepcopy(base)
broken["launches"][1]["counters"]["global"]["load"]["bytes"] = -1
write("negative.json", broken)
