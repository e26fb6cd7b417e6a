"""Prints plan.kernels: single ops of the plan, its declared groups, and groupings that nobody declared.

usage: gen.py KERNEL... [--dims tiny|35b] [--set DIM=N]... [--rows N,...] [--max-blocks N]      gen.py --list

Written from the plan's table of groups, so that kernels can be tested at any row count without a plan of that size.
"""
import argparse
import sys

DIMS = {
    "tiny": dict(hidden=256, vocab=512, q_heads=4, kv_heads=2, head_dim=64, lin_k_heads=2, lin_k_dim=128, lin_v_heads=4,
                 lin_v_dim=128, experts=8, top_k=2, moe_inter=128, shared_inter=128, rotary=16, sections="3, 3, 2"),
    "35b": dict(hidden=2048, vocab=248320, q_heads=16, kv_heads=2, head_dim=256, lin_k_heads=16, lin_k_dim=128,
                lin_v_heads=32, lin_v_dim=128, experts=256, top_k=8, moe_inter=512, shared_inter=512, rotary=64,
                sections="11, 11, 10"),
}
FP8 = "fp8_block128x128"
TENSOR_CORE = "tensor_core:mma.sync.m16n8k16.bf16"


class Kernel:
    """A kernel under construction. Values are (name, type); arguments come in four kinds, in the order of the ABI."""

    def __init__(self, name, dims, rows, max_blocks, compute="memory", numerics="reference"):
        self.name, self.rows, self.max_blocks, self.compute, self.numerics = name, rows, max_blocks, compute, numerics
        self.args, self.lines, self.yields, self.count = [[], [], [], []], [], [], 0
        self.shared = {}
        for key, value in dims.items():
            setattr(self, key, value)
        self.channels = 2 * self.lin_k_heads * self.lin_k_dim + self.lin_v_heads * self.lin_v_dim
        self.values = self.lin_v_heads * self.lin_v_dim
        self.q_columns, self.kv_columns = self.q_heads * self.head_dim, self.kv_heads * self.head_dim

    def fresh(self):
        self.count += 1
        return f"%{self.count}"

    def argument(self, kind, type, key=None):
        if key in self.shared:
            return self.shared[key]
        value = (self.fresh(), type)
        self.args[kind].append(value)
        if key:
            self.shared[key] = value
        return value

    def edge(self, columns, format="bf16", rows=None):
        return self.argument(0, tensor(rows or self.rows, columns, format))

    def ids(self):
        return self.argument(0, tensor(self.rows, self.top_k, "i32"), "topk_id")

    def step(self, name):
        types = {"positions": tensor(3, self.rows, "i32"), "slot_mapping": f"tensor<{self.rows}xi64>",
                 "block_tables": tensor(self.rows, self.max_blocks, "i32")}
        return self.argument(1, types.get(name, f"tensor<{self.rows}xi32>"), name)

    def weight(self, *dims, format="bf16"):
        return self.argument(2, f"!plan.weight<{' x '.join(map(str, dims))}, {format}>")

    def state(self, kind, *dims, format="f32"):
        return self.argument(3, f"!plan.state<{kind}, {' x '.join(map(str, dims))}, {format}>", (kind, dims))

    def cache(self, name):
        return self.argument(3, f"!plan.state<paged, {self.kv_heads} x {self.head_dim}, bf16>", name)

    def op(self, word, operands, results, act, steps, weight=None, attrs=""):
        """Adds a node and returns its results. `results`: (columns, format) or (columns, format, rows)."""
        types = [tensor(rest[0] if rest else self.rows, columns, format) if columns else f"tensor<{self.rows}x{format}>"
                 for columns, format, *rest in results]
        values = [(self.fresh(), type) for type in types]
        precision = ([f"weight = {weight}"] if weight else []) + ([f"act = {act}"] if act else [])
        if results:
            precision.append("out = [" + ", ".join(r[1] for r in results) + "]")
        left = ", ".join(v[0] for v in values) + " = " if values else ""
        self.lines.append(f"    {left}plan.{word} {', '.join(o[0] for o in operands)} precision<{', '.join(precision)}> "
                          f"steps<{steps}>{' {' + attrs + '}' if attrs else ''} : ({', '.join(o[1] for o in operands)})"
                          f" -> {types[0] if len(types) == 1 else '(' + ', '.join(types) + ')'}")
        return values[0] if len(values) == 1 else values

    def store(self, *values):
        self.yields += values

    # The nodes of the plan.
    def norm(self, x, word="rms_norm", length=None, act="bf16"):
        columns = self.columns(x)
        return self.op(word, [x, self.weight(length or columns)], [(columns, "bf16")], act, "compute f32",
                       attrs="eps = 1.0e-06 : f32, offset = 1.0 : f32")

    def columns(self, value):
        return int(value[1].split("<")[1].split("x")[1])

    def add(self, x, update):
        return self.op("residual_add", [x, update], [(self.columns(x), "bf16")], "bf16", "compute f32")

    def linear(self, x, outputs, role, weight=FP8, act="bf16", out="bf16", word="linear"):
        through = act if weight == FP8 else "bf16"
        steps = (f"act {act}, weight {weight} -> {through}, mma {act} * {through}, accumulate f32, "
                 f"scale {'f32' if weight == FP8 else 'none'}")
        return self.op(word, [x, self.weight(outputs, self.columns(x), format=weight)], [(outputs, out)], act, steps,
                       weight, f'role = "{role}"' if word == "linear" else "")

    def experts_linear(self, word, x, outputs, act):
        steps = ("gather bf16, " if act == "bf16" else "") + (
            f"act {act}, weight {FP8} -> {act}, mma {act} * {act}, accumulate f32, scale f32")
        return self.op(word, [x, self.ids(), self.weight(self.experts, outputs, self.columns(x), format=FP8)],
                       [(outputs, "bf16", self.rows * self.top_k)], act, steps, FP8)

    def silu_mul(self, x, rows=None):
        return self.op("silu_mul", [x], [(self.columns(x) // 2, "f32", rows or self.rows)], "bf16", "compute f32")

    def gates(self, ba):
        v = self.lin_v_heads
        return self.op("gdn_gates", [ba, self.weight(v, format="f32"), self.weight(v, format="f32")],
                       [(v, "f32"), (v, "f32")], "f32", "compute f32")

    def conv(self, x):
        return self.op("conv1d_update", [x, self.step("slots_in"), self.step("slots_out"), self.weight(self.channels, 4),
                                         self.state("slots", self.channels, 4)], [(self.channels, "f32")], "bf16",
                       "state f32, compute f32")

    def snapshot(self, conv):
        self.op("state_snapshot", [conv, self.state("slots", self.channels, 4)], [], "f32", "state f32")

    def l2(self, conv):
        return self.op("l2_norm", [conv], [(self.channels, "f32")], "f32", "compute f32",
                       attrs=f"heads = #plan.dim<{2 * self.lin_k_heads}>, head_dim = #plan.dim<{self.lin_k_dim}>, "
                             "eps = 1.0e-06 : f32")

    def recurrence(self, qkv, decay, beta):
        return self.op("gdn_recurrence", [qkv, decay, beta, self.step("slots_in"), self.step("slots_out"),
                                          self.state("slots", self.lin_v_heads, self.lin_k_dim, self.lin_v_dim)],
                       [(self.values, "f32")], "f32", "state f32, compute f32")

    def gated_norm(self, core, qkvz):
        return self.op("gated_rms_norm", [core, qkvz, self.weight(self.lin_v_dim)], [(self.values, "bf16")], "f32",
                       "compute f32", attrs="eps = 1.0e-06 : f32, offset = 0.0 : f32")

    def split(self, qg):
        return self.op("split", [qg], [(self.q_columns, "bf16")] * 2, "bf16", "move bf16",
                       attrs=f"head_dim = #plan.dim<{self.head_dim}>")

    def rope(self, q, k):
        return self.op("rope", [q, k, self.step("positions")], [(self.q_columns, "bf16"), (self.kv_columns, "bf16")],
                       "bf16", "compute f32",
                       attrs=f"head_dim = #plan.dim<{self.head_dim}>, rotary_dim = {self.rotary} : i64, "
                             f"theta = 1.0e+07 : f64, sections = array<i64: {self.sections}>")

    def kv_write(self, k, v):
        self.op("kv_write", [k, v, self.step("slot_mapping"), self.cache("k"), self.cache("v")], [], "bf16", "cache bf16")

    def attention(self, q, k, v):
        return self.op("paged_attention", [q, k, v, self.step("block_tables"), self.step("seq_lens"), self.cache("k"),
                                           self.cache("v")], [(self.q_columns, "bf16")], "bf16",
                       "cache bf16, scores f32, softmax f32, accumulate f32")

    def gate_mul(self, a, gate):
        return self.op("sigmoid_gate_mul", [a, gate], [(self.q_columns, "bf16")], "bf16", "compute f32")

    def top_k_op(self, logits):
        return self.op("top_k", [logits], [(self.top_k, "f32"), (self.top_k, "i32")], "bf16", "score f32")

    def blend(self, edown, topk_w, sdown, sg):
        return self.op("blend", [edown, topk_w, sdown, sg], [(self.hidden, "bf16")], "bf16", "scatter f32, combine f32")

    def text(self):
        args = [a for kind in self.args for a in kind]
        lines = [f'plan.kernel @{self.name} rows {self.rows} compute "{self.compute}" numerics "{self.numerics}" {{',
                 f"  ^bb0({', '.join(f'{n}: {t}' for n, t in args)}):", *self.lines]
        if self.yields:
            lines.append(f"    plan.yield {', '.join(v[0] for v in self.yields)} : {', '.join(v[1] for v in self.yields)}")
        return "\n".join(lines + ["}"]) + "\n"


def tensor(rows, columns, format):
    return f"tensor<{rows}x{columns}x{format}>"


KERNELS = {}


def kernel(compute="memory", numerics="reference"):
    """Registers a function that adds the nodes of a kernel named like it."""
    def register(build):
        KERNELS[build.__name__] = (build, compute, numerics)
        return build
    return register


# The groups of the decode plan, device groups only, under the names of their rules where these tell what is inside.
@kernel()
def input_norm(k):
    k.store(k.norm(k.edge(k.hidden)))


def w8a16(name, columns, outputs):
    def build(k):
        k.store(k.linear(k.edge(columns(k)), outputs(k), name))
    build.__name__ = "linear_" + name
    kernel(TENSOR_CORE)(build)


w8a16("qkvz", lambda k: k.hidden, lambda k: k.channels + k.values)
w8a16("gdn_out", lambda k: k.values, lambda k: k.hidden)
w8a16("q", lambda k: k.hidden, lambda k: 2 * k.q_columns)
w8a16("k", lambda k: k.hidden, lambda k: k.kv_columns)
w8a16("v", lambda k: k.hidden, lambda k: k.kv_columns)
w8a16("o", lambda k: k.q_columns, lambda k: k.hidden)


@kernel("cuda_core")
def ba_gates(k):
    k.store(*k.gates(k.linear(k.edge(k.hidden), 2 * k.lin_v_heads, "ba", "bf16", out="f32")))


@kernel("cuda_core")
def conv_l2(k):
    conv = k.conv(k.edge(k.channels + k.values))
    if k.rows == 1:
        k.snapshot(conv)
    k.store(k.l2(conv))


@kernel("cuda_core")
def conv_window(k):
    """Of one row; nobody reads what the convolution gives."""
    k.snapshot(k.conv(k.edge(k.channels + k.values)))


@kernel("cuda_core")
def gdn_recurrence(k):
    k.store(k.recurrence(k.edge(k.channels, "f32"), k.edge(k.lin_v_heads, "f32"), k.edge(k.lin_v_heads, "f32")))


@kernel()
def gated_rms_norm(k):
    k.store(k.gated_norm(k.edge(k.values, "f32"), k.edge(k.channels + k.values)))


@kernel()
def add_post_norm(k):
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    k.store(y, k.norm(y, act="f32"))


@kernel("cuda_core")
def router(k):
    k.store(k.linear(k.edge(k.hidden), k.experts, "", "bf16", word="router"))


@kernel()
def top_k(k):
    k.store(*k.top_k_op(k.edge(k.experts)))


@kernel("cuda_core")
def gate_up_shared(k):
    xn = k.edge(k.hidden)
    k.store(k.experts_linear("expert_gate_up", xn, 2 * k.moe_inter, "bf16"),
            k.linear(xn, 2 * k.shared_inter, "shared_gate_up"))


@kernel("cuda_core")
def silu_down_shared(k):
    rows = k.rows * k.top_k
    eact = k.silu_mul(k.edge(2 * k.moe_inter, rows=rows), rows)
    edown = k.experts_linear("expert_down", eact, k.hidden, "f32")
    sact = k.silu_mul(k.edge(2 * k.shared_inter))
    k.store(edown, k.linear(sact, k.hidden, "shared_down", act="f32"))


@kernel("cuda_core")
def shared_gate_blend(k):
    xn, edown, topk_w, sdown = (k.edge(k.hidden), k.edge(k.hidden, rows=k.rows * k.top_k), k.edge(k.top_k, "f32"),
                                k.edge(k.hidden))
    k.store(k.blend(edown, topk_w, sdown, k.linear(xn, 1, "shared_gate", "bf16", out="f32")))


@kernel(numerics="bit_identical(residual_add_rms_norm_exact_microtest)")
def cross_layer_add_norm(k):
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    k.store(y, k.norm(y))


@kernel()
def split(k):
    k.store(*k.split(k.edge(2 * k.q_columns)))


@kernel()
def q_norm(k):
    k.store(k.norm(k.edge(k.q_columns), "qk_norm", k.head_dim))


@kernel()
def k_norm(k):
    k.store(k.norm(k.edge(k.kv_columns), "qk_norm", k.head_dim))


@kernel()
def rope(k):
    k.store(*k.rope(k.edge(k.q_columns), k.edge(k.kv_columns)))


@kernel()
def kv_write(k):
    k.kv_write(k.edge(k.kv_columns), k.edge(k.kv_columns))


@kernel("cuda_core")
def paged_attention(k):
    k.store(k.attention(k.edge(k.q_columns), k.edge(k.kv_columns), k.edge(k.kv_columns)))


@kernel()
def sigmoid_gate_mul(k):
    k.store(k.gate_mul(k.edge(k.q_columns), k.edge(k.q_columns)))


@kernel()
def residual_add(k):
    k.store(k.add(k.edge(k.hidden), k.edge(k.hidden)))


@kernel()
def final_norm(k):
    k.store(k.norm(k.edge(k.hidden), "final_norm"))


@kernel("cuda_core")
def lm_head(k):
    k.store(k.linear(k.edge(k.hidden), k.vocab, "", "bf16", word="lm_head"))


# The nodes of the groups above, each alone: the unfused chain.
@kernel("cuda_core")
def linear_ba(k):
    k.store(k.linear(k.edge(k.hidden), 2 * k.lin_v_heads, "ba", "bf16", out="f32"))


@kernel("cuda_core")
def gdn_gates(k):
    k.store(*k.gates(k.edge(2 * k.lin_v_heads, "f32")))


@kernel("cuda_core")
def conv1d_update(k):
    k.store(k.conv(k.edge(k.channels + k.values)))


@kernel("cuda_core")
def l2_norm(k):
    k.store(k.l2(k.edge(k.channels, "f32")))


@kernel("cuda_core")
def expert_gate_up(k):
    k.store(k.experts_linear("expert_gate_up", k.edge(k.hidden), 2 * k.moe_inter, "bf16"))


@kernel("cuda_core")
def shared_gate_up(k):
    k.store(k.linear(k.edge(k.hidden), 2 * k.shared_inter, "shared_gate_up"))


@kernel("cuda_core")
def silu_mul(k):
    k.store(k.silu_mul(k.edge(2 * k.moe_inter)))


@kernel("cuda_core")
def expert_down(k):
    k.store(k.experts_linear("expert_down", k.edge(k.moe_inter, "f32", k.rows * k.top_k), k.hidden, "f32"))


@kernel("cuda_core")
def shared_down(k):
    k.store(k.linear(k.edge(k.shared_inter, "f32"), k.hidden, "shared_down", act="f32"))


@kernel("cuda_core")
def shared_gate(k):
    k.store(k.linear(k.edge(k.hidden), 1, "shared_gate", "bf16", out="f32"))


@kernel("cuda_core")
def blend(k):
    k.store(k.blend(k.edge(k.hidden, rows=k.rows * k.top_k), k.edge(k.top_k, "f32"), k.edge(k.hidden), k.edge(1, "f32")))


# Groupings that no plan declares yet.
@kernel("cuda_core")
def recurrence_gated_norm(k):
    core = k.recurrence(k.edge(k.channels, "f32"), k.edge(k.lin_v_heads, "f32"), k.edge(k.lin_v_heads, "f32"))
    k.store(core, k.gated_norm(core, k.edge(k.channels + k.values)))


@kernel("cuda_core")
def attention_gate(k):
    a = k.attention(k.edge(k.q_columns), k.edge(k.kv_columns), k.edge(k.kv_columns))
    k.store(a, k.gate_mul(a, k.edge(k.q_columns)))


@kernel("cuda_core")
def gates_recurrence(k):
    k.store(k.recurrence(k.edge(k.channels, "f32"), *k.gates(k.edge(2 * k.lin_v_heads, "f32"))))


@kernel("cuda_core")
def l2_recurrence(k):
    qkv = k.l2(k.edge(k.channels, "f32"))
    k.store(qkv, k.recurrence(qkv, k.edge(k.lin_v_heads, "f32"), k.edge(k.lin_v_heads, "f32")))


@kernel("cuda_core")
def gates_l2_recurrence_gated_norm(k):
    qkv, gates = k.l2(k.edge(k.channels, "f32")), k.gates(k.edge(2 * k.lin_v_heads, "f32"))
    k.store(*gates, k.gated_norm(k.recurrence(qkv, *gates), k.edge(k.channels + k.values)))


@kernel("cuda_core")
def kv_write_attention(k):
    key, value = k.edge(k.kv_columns), k.edge(k.kv_columns)
    k.kv_write(key, value)
    k.store(k.attention(k.edge(k.q_columns), key, value))


@kernel("cuda_core")
def gate_up_silu(k):
    sgu = k.linear(k.edge(k.hidden), 2 * k.shared_inter, "shared_gate_up")
    k.store(sgu, k.silu_mul(sgu))


@kernel()
def split_q_norm(k):
    q, gate = k.split(k.edge(2 * k.q_columns))
    k.store(q, gate, k.norm(q, "qk_norm", k.head_dim))


@kernel(TENSOR_CORE)
def linear_k_v(k):
    xn = k.edge(k.hidden)
    k.store(k.linear(xn, k.kv_columns, "k"), k.linear(xn, k.kv_columns, "v"))


@kernel(TENSOR_CORE)
def linear_q_k_v(k):
    xn = k.edge(k.hidden)
    k.store(k.linear(xn, 2 * k.q_columns, "q"), k.linear(xn, k.kv_columns, "k"), k.linear(xn, k.kv_columns, "v"))


@kernel(TENSOR_CORE)
def linear_qkvz_ba_gates(k):
    xn = k.edge(k.hidden)
    ba = k.linear(xn, 2 * k.lin_v_heads, "ba", "bf16", out="f32")
    k.store(k.linear(xn, k.channels + k.values, "qkvz"), *k.gates(ba))


@kernel(TENSOR_CORE)
def linear_q_split(k):
    qg = k.linear(k.edge(k.hidden), 2 * k.q_columns, "q")
    k.store(qg, *k.split(qg))


@kernel(TENSOR_CORE)
def gate_mul_o_add(k):
    ag = k.gate_mul(k.edge(k.q_columns), k.edge(k.q_columns))
    o = k.linear(ag, k.hidden, "o")
    k.store(ag, o, k.add(k.edge(k.hidden), o))


@kernel("cuda_core")
def experts_up_silu(k):
    xn = k.edge(k.hidden)
    rows = k.rows * k.top_k
    egu, sgu = k.experts_linear("expert_gate_up", xn, 2 * k.moe_inter, "bf16"), k.linear(xn, 2 * k.shared_inter, "up")
    k.store(egu, sgu, k.silu_mul(egu, rows), k.silu_mul(sgu))


@kernel("cuda_core")
def silu_down_blend(k):
    rows = k.rows * k.top_k
    edown = k.experts_linear("expert_down", k.silu_mul(k.edge(2 * k.moe_inter, rows=rows), rows), k.hidden, "f32")
    sdown = k.linear(k.silu_mul(k.edge(2 * k.shared_inter)), k.hidden, "shared_down", act="f32")
    sg = k.linear(k.edge(k.hidden), 1, "shared_gate", "bf16", out="f32")
    k.store(edown, sdown, k.blend(edown, k.edge(k.top_k, "f32"), sdown, sg))


@kernel("cuda_core")
def shared_gate_blend_add(k):
    edown, topk_w, sdown = k.edge(k.hidden, rows=k.rows * k.top_k), k.edge(k.top_k, "f32"), k.edge(k.hidden)
    sg = k.linear(k.edge(k.hidden), 1, "shared_gate", "bf16", out="f32")
    f = k.blend(edown, topk_w, sdown, sg)
    k.store(sg, f, k.add(k.edge(k.hidden), f))


@kernel("cuda_core")
def add_norm_router(k):
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    xn = k.norm(y, act="f32")
    k.store(y, xn, k.linear(xn, k.experts, "", "bf16", word="router"))


@kernel("cuda_core")
def norm_experts_up(k):
    xn = k.norm(k.edge(k.hidden))
    k.store(xn, k.experts_linear("expert_gate_up", xn, 2 * k.moe_inter, "bf16"))


@kernel(TENSOR_CORE)
def norm_q_k_v(k):
    xn = k.norm(k.edge(k.hidden))
    k.store(k.linear(xn, 2 * k.q_columns, "q"), k.linear(xn, k.kv_columns, "k"), k.linear(xn, k.kv_columns, "v"))


@kernel(TENSOR_CORE)
def gated_norm_out(k):
    gated = k.gated_norm(k.edge(k.values, "f32"), k.edge(k.channels + k.values))
    k.store(gated, k.linear(gated, k.hidden, "gdn_out"))


@kernel()
def add_final_norm(k):
    y = k.add(k.edge(k.hidden), k.edge(k.hidden))
    k.store(y, k.norm(y, "final_norm"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dims", default="tiny", choices=DIMS)
    parser.add_argument("--set", action="append", default=[], metavar="DIM=N")
    parser.add_argument("--rows", default="1", help="a list: one kernel for each")
    parser.add_argument("--max-blocks", type=int, default=8)
    args = parser.parse_args()
    if args.list:
        return print("\n".join(KERNELS))
    dims = dict(DIMS[args.dims], **{name: int(size) for name, size in (item.split("=") for item in args.set)})
    for name in args.kernels:
        if name not in KERNELS:
            parser.error(f"no kernel {name!r}; --list names all")
        build, compute, numerics = KERNELS[name]
        for rows in map(int, args.rows.split(",")):
            made = Kernel(f"{name}_r{rows}", dims, rows, args.max_blocks, compute, numerics)
            build(made)
            sys.stdout.write(made.text())


if __name__ == "__main__":
    main()
