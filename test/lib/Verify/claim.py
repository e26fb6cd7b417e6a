"""usage: claim.py PLAN.json GROUP CONTRACT: the plan with another numerics contract of one group, on stdout."""
import json
import sys

plan, group, contract = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
for item in [g for g in plan["groups"] if g["id"] == group] + [n for n in plan["nodes"] if n["group"] == group]:
    item["numerics"] = contract
json.dump(plan, sys.stdout)
