"""Prints the plan's row-wise groups by way of gen.py.

usage: groups.py GEN.PY --dims D --rows N
"""
import subprocess
import sys

NAMES = """input_norm conv_l2 gated_rms_norm cross_layer_add_norm split q_norm k_norm rope kv_write sigmoid_gate_mul
residual_add final_norm gdn_gates conv1d_update l2_norm silu_mul blend split_q_norm add_final_norm""".split()

for name in NAMES:
    sys.stdout.write(subprocess.run([sys.executable, sys.argv[1], name, *sys.argv[2:]], check=True, text=True,
                                    capture_output=True).stdout)
