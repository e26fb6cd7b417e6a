"""Judges a trace of plan-run.

plan-run-trace.py TRACE INSPECT PROGRAM DEVICE STEPS TURNS: of that many steps, each of TURNS launch lists of the program in `planc inspect --json`.
plan-run-trace.py --same TRACE TRACE: both say the same but for the times.
"""
import json
import sys

CLOSE = 2  # microseconds: events are read as floats of milliseconds


def load(path):
    with open(path) as file:
        return json.load(file)["traceEvents"]


def without_times(events):
    return [{key: value for key, value in event.items() if key not in ("ts", "dur")} for event in events]


def main(trace, inspected, program, device, steps, turns):
    events = load(trace)
    with open(inspected) as file:
        launches = next(p for p in json.load(file)["programs"] if p["name"] == program)["launch_list"]
    working = [launch for launch in launches if launch["where"] == "host" or launch.get("kernel")]
    names = {e["name"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names["process_name"].startswith(device + ": "), names
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {0: "host thread", 1: "stream"}, tracks
    assert {e["ph"] for e in events} == {"M", "X"} and len({e["pid"] for e in events}) == 1

    slices = [e for e in events if e["ph"] == "X"]
    groups = [e for e in slices if e["cat"] == "group"]
    whole = [e for e in slices if e["cat"] == "step"]
    assert [e["args"]["step"] for e in whole] == [s for s in range(int(steps)) for _ in range(int(turns))]
    assert len(groups) == len(working) * len(whole), (len(groups), len(working), len(whole))
    for i, step in enumerate(whole):
        mine = groups[i * len(working):(i + 1) * len(working)]
        assert step["tid"] == 0 and step["args"]["program"] == program
        for launch, e in zip(working, mine):
            expected = {"group": launch["group"], "rule": launch["rule"], "kernel": launch.get("kernel"),
                        "nodes": launch["nodes"], "step": step["args"]["step"]}
            assert e["args"] == expected, (e, expected)
            assert e["name"] == launch["rule"] and e["tid"] == (launch["where"] == "device"), e
            assert e["ts"] >= step["ts"] and e["dur"] >= 0, (e, step)
            assert e["ts"] + e["dur"] <= step["ts"] + step["dur"] + CLOSE, (e, step)
        # One entry of the launch list after the other, whatever their tracks.
        for before, after in zip(mine, mine[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + CLOSE, (before, after)
    # Kernels take time: the clock is the device's, not a counter of launches.
    assert all(e["dur"] > 0 for e in groups if e["tid"] == 1)

    for before, after in zip(whole, whole[1:]):
        assert before["ts"] + before["dur"] <= after["ts"] + CLOSE, (before, after)


if sys.argv[1] == "--same":
    assert without_times(load(sys.argv[2])) == without_times(load(sys.argv[3]))
else:
    main(*sys.argv[1:])
