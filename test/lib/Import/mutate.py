"""Breaks a good plan and config in one way at a time and checks what the tool says.

usage: mutate.py CASES TOOL EXAMPLES

CASES holds stanzas; a line of each begins with one of
  plan:   a Python statement over `plan`, the tiny decode plan (`n` its nodes, `e` edges, `g` groups, `l` layers)
  config: a statement over `config`, the tiny config (`t` its text_config)
  raw:    an expression over `text`, the plan's bytes, that gives the bytes to read instead
  rawcfg: the same for the config
  want:   text that one line of the messages must contain, in it `...` for anything; every `want` counts
  ok:     the tool must accept the result
Everywhere else the tool must exit 1, without a signal, and say what is wrong in few words.
"""
import copy
import json
import re
import subprocess
import sys
import tempfile

# What a user reads in full; an echo of the input would exceed it.
MOST_BYTES = 16000


def node(plan, ident):
    return next(n for n in plan["nodes"] if n["id"] == ident)


def edges(plan, ident):
    return [e for e in plan["edges"] if e["id"] == ident]


def regroup(plan, parts):
    """Gives the plan the groups `parts`, lists of node orders; each takes after the group of its first node."""
    old = copy.deepcopy(plan["groups"])
    home = {o: g for g in old for o in g["nodes"]}
    plan["groups"] = []
    for i, part in enumerate(parts):
        plan["groups"].append({**home[part[0]], "id": i, "nodes": part})
        for o in part:
            plan["nodes"][o]["group"] = i


def merge(plan, *idents, at=None):
    """Puts the groups of the nodes named into one, at the place of the last or of group `at`."""
    chosen = [node(plan, i)["group"] for i in idents]
    members = sorted({o for c in chosen for o in plan["groups"][c]["nodes"]})
    place = max(chosen) if at is None else at
    parts = []
    for g in plan["groups"]:
        if g["id"] == place:
            parts.append(members)
        elif g["id"] not in chosen:
            parts.append(g["nodes"])
    regroup(plan, parts)


def move(plan, group, place):
    """Moves a group to another place in the order of groups."""
    parts = [g["nodes"] for g in plan["groups"]]
    parts.insert(place, parts.pop(group))
    regroup(plan, parts)


def exchange(plan, a, b):
    """Gives two nodes each other's order; who reads whom and the groups stay as they were."""
    new = {a: b, b: a}
    plan["nodes"][a], plan["nodes"][b] = plan["nodes"][b], plan["nodes"][a]
    for i in (a, b):
        plan["nodes"][i]["order"] = i
    for e in plan["edges"]:
        e["from"], e["to"] = new.get(e["from"], e["from"]), new.get(e["to"], e["to"])
    for g in plan["groups"]:
        g["nodes"] = [new.get(o, o) for o in g["nodes"]]


def unfuse(plan, ident):
    for e in edges(plan, ident):
        e["fused"] = False


def stanzas(path):
    number, current = 0, []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        found = re.match(r"(plan|config|raw|rawcfg|want|ok):\s?(.*)", line)
        if found:
            current.append((number, found[1], found[2]))
        elif current and not line.strip():
            yield current
            current = []
    if current:
        yield current


def run(case, tool, texts, folder):
    plan, config = json.loads(texts[0]), json.loads(texts[1])
    names = {"plan": plan, "config": config, "n": plan["nodes"], "e": plan["edges"], "g": plan["groups"],
             "l": plan["layers"], "t": config["text_config"], "node": node, "edges": edges, "regroup": regroup,
             "merge": merge, "move": move, "exchange": exchange, "unfuse": unfuse, "json": json}
    out = [None, None]
    for _, kind, body in case:
        if kind in ("plan", "config"):
            exec(body, names)
        elif kind in ("raw", "rawcfg"):
            out[kind == "rawcfg"] = eval(body, {**names, "text": texts[kind == "rawcfg"]})
    for i, value in enumerate((names["plan"], names["config"])):
        with open(f"{folder}/{('plan', 'config')[i]}.json", "wb") as f:
            f.write(out[i] if out[i] is not None else json.dumps(value).encode())
    done = subprocess.run([tool, "plan.json", "--model", "config.json", "--to=memory", "--quiet"], cwd=folder,
                          capture_output=True, timeout=60)
    said = done.stderr.decode("utf-8", "replace")
    wants = [body for _, kind, body in case if kind == "want"]
    problems = []
    if any(kind == "ok" for _, kind, _ in case):
        if done.returncode:
            problems.append("should be accepted")
    elif done.returncode != 1:
        problems.append(f"exit code {done.returncode}, expected 1")
    if len(said) > MOST_BYTES:
        problems.append(f"{len(said)} bytes of messages")
    for want in wants:
        pattern = ".*".join(re.escape(part) for part in want.split("..."))
        if not any(re.search(pattern, line) for line in said.splitlines()):
            problems.append(f"nobody said: {want}")
    return problems, said


def main(cases, tool, examples):
    texts = [open(f"{examples}/{kind}/qwen3.6-tiny/{name}.json", "rb").read()
             for kind, name in (("plans", "decode-n1"), ("models", "config"))]
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in stanzas(cases):
            count += 1
            problems, said = run(case, tool, texts, folder)
            if problems:
                failed += 1
                print(f"{cases}:{case[0][0]}: " + "; ".join(problems) + "\n" + said[:3000])
    if not count:
        sys.exit("no cases")
    print(f"{count} cases, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
