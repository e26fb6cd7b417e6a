"""Makes plans with other groupings out of a plan, to test that content and nothing else decides what compiles.

usage: regroup.py PLAN.json OUT.json EDIT...

An EDIT is one of
  unfuse                      every node its own group (edges that were fused become stored; a norm that read a value before
                              it was rounded reads the stored one)
  merge=A+B[+C..]             in every block that has nodes named A, B, .. (last part of the node id; `xA` = the node A of the next
                              block), their groups become one
  split=A+B                   nodes of those names leave their groups, each to one of its own; what they exchange is stored
  fuse                        edges whose readers all lie in the writer's group are no longer stored
  compute=NAME:WORD           the group of node NAME declares that compute unit
"""
import collections
import json
import sys


def groups_of(plan):
    return [[plan["nodes"][o] for o in g["nodes"]] for g in plan["groups"]]


def rebuild(plan, parts):
    """Sets the plan's groups to `parts`: (template group, member orders), in an order that respects the data."""
    group_of = {o: i for i, (_, members) in enumerate(parts) for o in members}
    after = collections.defaultdict(set)
    for edge in plan["edges"]:
        a, b = group_of[edge["from"]], group_of[edge["to"]]
        if a != b:
            after[b].add(a)
    done, order = set(), []
    pending = sorted(range(len(parts)), key=lambda i: min(parts[i][1]))
    # A cache is read after it was written, which no edge says of a merged group's other members.
    while pending:
        ready = next((i for i in pending if after[i] <= done), pending[0])
        pending.remove(ready)
        done.add(ready)
        order.append(ready)
    plan["groups"] = []
    for new, old in enumerate(order):
        template, members = parts[old]
        plan["groups"].append({**template, "id": new, "nodes": sorted(members)})
        for o in members:
            plan["nodes"][o]["group"] = new


def unfuse(plan):
    parts = []
    for group in plan["groups"]:
        for o in group["nodes"]:
            node = plan["nodes"][o]
            template = {**group, "numerics": node["numerics"], "compute": node["compute"], "rule": "alone"}
            parts.append((template, [o]))
    for edge in plan["edges"]:
        edge["fused"] = False
    rebuild(plan, parts)
    read_as_stored(plan)


def read_as_stored(plan):
    """A norm outside its input's group reads what is stored."""
    for edge in plan["edges"]:
        writer, reader = plan["nodes"][edge["from"]], plan["nodes"][edge["to"]]
        if reader["op"] == "rms_norm" and edge["format"] == "bf16":
            if len(plan["groups"][reader["group"]]["nodes"]) == 1 or writer["group"] != reader["group"]:
                reader["precision"]["activation"] = "bf16"


def merge(plan, names):
    blocks = collections.defaultdict(dict)
    sequence = list(dict.fromkeys(n["block"] for n in plan["nodes"]))
    following = dict(zip(sequence, sequence[1:]))
    for node in plan["nodes"]:
        blocks[node["block"]][node["id"].rsplit(".", 1)[1]] = node
    union, merged = {}, 0
    for block in sequence:
        found = []
        for name in names:
            home = blocks.get(following.get(block), {}) if name.startswith("x") and name not in blocks[block] else blocks[block]
            found.append(home.get(name if home is blocks[block] else name[1:]))
        if all(found):
            merged += 1
            ids = {union.get(n["group"], n["group"]) for n in found}
            target = min(ids)
            for n in found:
                union[n["group"]] = target
            for key, value in list(union.items()):
                if value in ids:
                    union[key] = target
    if not merged:
        sys.exit(f"no block has {'+'.join(names)}")
    parts = collections.defaultdict(list)
    for group in plan["groups"]:
        parts[union.get(group["id"], group["id"])] += group["nodes"]
    rank = {"memory": 0, "cuda_core": 1}
    made = []
    for gid, members in parts.items():
        involved = [g for g in plan["groups"] if set(g["nodes"]) & set(members)]
        strictest = max(involved, key=lambda g: rank.get(g["compute"], 2))
        contracts = {g["numerics"] for g in involved}
        made.append(({**plan["groups"][gid], "compute": strictest["compute"],
                      "numerics": contracts.pop() if len(contracts) == 1 else "reference",
                      "rule": "regrouped" if len(involved) > 1 else plan["groups"][gid]["rule"]}, members))
    for template, members in made:
        for o in members:
            plan["nodes"][o]["numerics"] = template["numerics"]
            plan["nodes"][o]["compute"] = template["compute"]
    rebuild(plan, made)


def split(plan, names):
    parts = []
    for group in plan["groups"]:
        leaving = [o for o in group["nodes"] if plan["nodes"][o]["id"].rsplit(".", 1)[1] in names and len(group["nodes"]) > 1]
        staying = [o for o in group["nodes"] if o not in leaving]
        parts += [({**group, "rule": "alone"}, [o]) for o in leaving] + ([(group, staying)] if staying else [])
    home = {o: i for i, (_, members) in enumerate(parts) for o in members}
    stored = {(e["from"], e["id"]) for e in plan["edges"] if home[e["from"]] != home[e["to"]]}
    for edge in plan["edges"]:
        if (edge["from"], edge["id"]) in stored:
            edge["fused"] = False
    rebuild(plan, parts)
    read_as_stored(plan)


def fuse(plan):
    readers = collections.defaultdict(list)
    for edge in plan["edges"]:
        readers[(edge["from"], edge["id"])].append(edge)
    for (writer, _), edges in readers.items():
        home = plan["nodes"][writer]["group"]
        if all(plan["nodes"][e["to"]]["group"] == home for e in edges):
            for edge in edges:
                edge["fused"] = True


def main(source, target, *edits):
    plan = json.load(open(source))
    for edit in edits:
        word, _, value = edit.partition("=")
        if word == "unfuse":
            unfuse(plan)
        elif word == "merge":
            merge(plan, value.split("+"))
        elif word == "split":
            split(plan, value.split("+"))
        elif word == "fuse":
            fuse(plan)
        elif word == "compute":
            name, unit = value.split(":", 1)
            for node in plan["nodes"]:
                if node["id"].rsplit(".", 1)[1] == name:
                    group = plan["groups"][node["group"]]
                    group["compute"] = unit
                    for o in group["nodes"]:
                        plan["nodes"][o]["compute"] = unit
        else:
            sys.exit(f"unknown edit {edit}")
    json.dump(plan, open(target, "w"))


if __name__ == "__main__":
    main(*sys.argv[1:])
