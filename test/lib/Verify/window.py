"""usage: window.py PLAN.json: the plan with a second window of layer 0's convolution, whose result orders a snapshot alone, on stdout."""
import json
import sys

plan = json.load(open(sys.argv[1]))
nodes, edges, groups = plan["nodes"], plan["edges"], plan["groups"]
layer = plan["layers"][0]
layer["blocks"].append("l0.twin")
layer["template"] += "+twin"
conv, snapshot = len(nodes), len(nodes) + 1
edges += [{**e, "to": conv} for e in edges if e["id"] == "l0.gdn.qkvz" and e["to"] == 5]
edges.append({**next(e for e in edges if e["id"] == "l0.gdn.conv"), "id": "l0.twin.conv", "from": conv, "to": snapshot})
for old, order in ((5, conv), (6, snapshot)):
    name = nodes[old]["id"].replace("l0.gdn", "l0.twin")
    nodes.append({**nodes[old], "id": name, "order": order, "group": len(groups), "block": "l0.twin", "block_type": "twin"})
groups.append({**groups[4], "id": len(groups), "nodes": [conv, snapshot]})
json.dump(plan, sys.stdout)
