"""Prints groupings of row-wise nodes that no plan declares, at unusual dims as well, for planc-kernel-test.

usage: rowwise.py [--rows N] [--dims tiny|odd|uneven] [NAME...]
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../kernels"))
from gen import DIMS, Kernel  # noqa: E402

# Heads of 96 and 64, a hidden size of 7 times 32, few and many heads.
DIMS = dict(DIMS,
            odd=dict(DIMS["tiny"], hidden=224, q_heads=3, kv_heads=1, head_dim=96, lin_k_dim=96, lin_v_dim=96, rotary=96,
                     sections="16, 16, 16", top_k=3, moe_inter=96),
            uneven=dict(DIMS["tiny"], hidden=1056, q_heads=6, kv_heads=3, head_dim=128, lin_k_dim=128, lin_v_dim=64,
                        lin_v_heads=6, rotary=32, sections="6, 5, 5", top_k=5))


def qk_norms(k):
    k.store(k.norm(k.edge(k.q_columns), "qk_norm", k.head_dim), k.norm(k.edge(k.kv_columns), "qk_norm", k.head_dim))


def norms_rope(k):
    q, key = (k.norm(k.edge(columns), "qk_norm", k.head_dim) for columns in (k.q_columns, k.kv_columns))
    k.store(*k.rope(q, key))


def rope_kv_write(k):
    q, key = k.rope(k.edge(k.q_columns), k.edge(k.kv_columns))
    k.kv_write(key, k.edge(k.kv_columns))
    k.store(q, key)


def heads_to_cache(k):
    """split + both norms + rope + kv_write"""
    q, gate = k.split(k.edge(2 * k.q_columns))
    q, key = k.rope(k.norm(q, "qk_norm", k.head_dim), k.norm(k.edge(k.kv_columns), "qk_norm", k.head_dim))
    k.kv_write(key, k.edge(k.kv_columns))
    k.store(gate, q, key)


def blend_add(k):
    f = k.blend(k.edge(k.hidden, rows=k.rows * k.top_k), k.edge(k.top_k, "f32"), k.edge(k.hidden), k.edge(1, "f32"))
    k.store(f, k.add(k.edge(k.hidden), f))


def blend_add_norm(k):
    f = k.blend(k.edge(k.hidden, rows=k.rows * k.top_k), k.edge(k.top_k, "f32"), k.edge(k.hidden), k.edge(1, "f32"))
    y = k.add(k.edge(k.hidden), f)
    k.store(f, y, k.norm(y))


def add_two_norms(k):
    """The norm of a norm."""
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    k.store(y, k.norm(k.norm(y)))


def two_adds(k):
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    k.store(k.add(y, k.edge(k.hidden)), y)


def conv_only_window(k):
    """The conv's result stays in the group, and so does the norm's input."""
    k.store(k.l2(k.conv(k.edge(k.channels + k.values))))


def conv_and_l2_stored(k):
    conv = k.conv(k.edge(k.channels + k.values))
    k.store(conv, k.l2(conv))


def conv_scattered(k):
    """A reader takes channels from elsewhere than its own column: by way of shared memory."""
    conv = k.conv(k.edge(k.channels + k.values))
    k.store(k.op("silu_mul", [conv], [(k.channels // 2, "f32")], "f32", "compute f32"))


def norm_then_silu(k):
    """A norm whose columns move on the way to what is stored: one CTA per row."""
    k.store(k.silu_mul(k.norm(k.edge(k.hidden))))


def norm_then_split(k):
    q, gate = k.split(k.norm(k.edge(2 * k.q_columns)))
    k.store(q, gate)


def row_norm_of_head_norm(k):
    """Norms of two lengths over one row."""
    k.store(k.norm(k.norm(k.edge(k.q_columns), "qk_norm", k.head_dim)))


def gated_norm_of_l2(k):
    k.store(k.l2(k.edge(k.channels, "f32")), k.gated_norm(k.edge(k.values, "f32"), k.edge(k.channels + k.values)))


def gate_and_gates(k):
    """Two components that share nothing."""
    k.store(k.gate_mul(k.edge(k.q_columns), k.edge(k.q_columns)), *k.gates(k.edge(2 * k.lin_v_heads, "f32")))


def f32_edges(k):
    x, u = k.edge(k.hidden, "f32"), k.edge(k.hidden)
    y = k.op("residual_add", [x, u], [(k.hidden, "f32")], "f32", "compute f32")
    k.store(y, k.norm(y, act="f32"))


def long_row(k):
    k.store(k.norm(k.edge(5120)), k.norm(k.edge(3072)), k.norm(k.edge(32)))


KERNELS = [value for value in list(globals().values()) if callable(value) and value.__module__ == __name__]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--dims", default="tiny", choices=sorted(DIMS))
    options = parser.parse_args()
    for build in KERNELS:
        if not options.names or build.__name__ in options.names:
            k = Kernel(build.__name__, DIMS[options.dims], options.rows, 4, "cuda_core")
            build(k)
            sys.stdout.write(k.text())


if __name__ == "__main__":
    main()
