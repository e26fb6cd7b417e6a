"""Compiles groupings that no plan declares, holds every stored edge of a run against the reference, and runs them once more under all of
the emulator's checks, in another order of CTAs and warps.

usage: regroupings.py PLAN.json CONFIG.json FOLDER FIRST LAST      (planc and plan-run on PATH; runs entries FIRST..LAST-1 of the table)

The run uses the tiny model with made-up weights. What a schedule cannot carry is refused by planc; every entry of this table can be carried.
"""
import pathlib
import subprocess
import sys

import regroup

LEGAL = [
    ["unfuse"],
    ["merge=recur+out_norm"],
    ["merge=recur+out_norm", "fuse"],
    ["merge=attend+gate_mul"],
    ["merge=attend+gate_mul", "fuse"],
    ["merge=kv_write+attend"],
    ["merge=kv_write+attend+gate_mul", "fuse"],
    ["merge=k+v"],
    ["merge=q+k+v"],
    ["merge=q_split+q_norm"],
    ["merge=q_split+q_norm", "fuse"],
    ["merge=q_norm+k_norm"],
    ["merge=q_norm+k_norm+rope"],
    ["merge=q_norm+k_norm+rope", "fuse"],
    ["merge=q_split+q_norm+k_norm+rope"],
    ["merge=rope+kv_write"],
    ["merge=q_split+q_norm+k_norm+rope+kv_write"],
    ["merge=q_split+q_norm+k_norm+rope+kv_write", "fuse"],
    ["merge=add+xfinal_norm"],
    ["unfuse", "merge=shared_gate+blend+add"],
    ["unfuse", "merge=add+xinput_norm"],
    ["unfuse", "merge=conv+l2"],
    ["unfuse", "merge=conv+conv_ckpt"],
    ["unfuse", "merge=ba+gates"],
    ["unfuse", "merge=ba+gates", "fuse"],
    ["unfuse", "merge=gates+recur"],
    ["unfuse", "merge=gates+recur+out_norm", "fuse"],
    ["unfuse", "merge=l2+recur"],
    ["unfuse", "merge=l2+gates+recur+out_norm", "fuse"],
    ["unfuse", "merge=shared_gate+blend"],
    ["unfuse", "merge=blend+add"],
    ["unfuse", "merge=experts_act+experts_down"],
    ["unfuse", "merge=shared_act+shared_down", "fuse"],
    ["unfuse", "merge=experts_gate_up+shared_gate_up"],
    ["unfuse", "merge=experts_act+shared_act"],
    ["unfuse", "merge=experts_down+shared_down"],
    ["split=experts_act+shared_act"],
    ["split=experts_act+shared_act", "merge=experts_gate_up+experts_act+shared_act"],
    ["split=experts_act+shared_act", "merge=experts_gate_up+experts_act+shared_act", "fuse"],
    ["split=experts_act+shared_act", "merge=shared_gate_up+shared_act"],
    ["split=gates"],
    ["split=shared_gate"],
    ["split=l2"],
    ["split=conv_ckpt"],
    ["split=post_norm"],
    ["split=post_norm", "merge=out+add"],
    ["split=post_norm", "merge=o+add", "fuse"],
    ["unfuse", "merge=post_norm+router"],
    ["unfuse", "merge=out_norm+out"],
    ["unfuse", "merge=input_norm+qkvz+ba+gates"],
    ["unfuse", "merge=input_norm+q+k+v", "fuse"],
    ["merge=q+q_split"],
    ["split=post_norm", "merge=gate_mul+o+add"],
    ["merge=final_norm+lm_head"],
    ["unfuse", "merge=experts_act+experts_down+shared_act+shared_down+shared_gate+blend"],
    ["unfuse", "merge=experts_act+experts_down+shared_act+shared_down+shared_gate+blend+add", "fuse"],
]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    return done.returncode, (done.stderr or done.stdout).strip()


def main(plan, config, folder, first, last):
    folder, failed = pathlib.Path(folder), 0
    folder.mkdir(parents=True, exist_ok=True)
    for number, edits in list(enumerate(LEGAL))[int(first):int(last)]:
        path, bundle = folder / f"{number}.json", folder / f"{number}.bundle"
        regroup.main(plan, path, *edits)
        code, text = run("planc", str(path), "--model", config, "--toolkit=none", "-o", str(bundle))
        if code == 0:
            code, text = run("plan-run", str(bundle), "--weights", "random:7", "--tokens", "1,2,3", "--compare", "reference")
        if code == 0:
            code, text = run("plan-run", str(bundle), "--weights", "random:7", "--tokens", "1,2,3", "--check", "all", "--schedule-seed", str(number + 1))
        print(f"{'ok  ' if code == 0 else 'FAIL'} {number} {' '.join(edits)}")
        if code != 0:
            failed += 1
            print("\n".join("     " + line for line in text.splitlines()[:4]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
