"""usage: report.py REPORT.json COUNT: what programs rely on in the report of `planc verify --json`, and a verdict in the cache for each kernel."""
import json
import sys

report = json.load(open(sys.argv[1]))
assert set(report) == {"kernels", "ok"} and report["ok"] is True, report
keys = {"name", "groups", "contract", "worst", "class", "mutations_applied", "mutations_caught"}
for kernel in report["kernels"]:
    assert keys <= set(kernel), kernel
    assert kernel["groups"] and 0 <= kernel["worst"] < 1 and not kernel["failures"], kernel
assert len(report["kernels"]) == int(open(sys.argv[2]).read()), "a verdict is not in the cache"
