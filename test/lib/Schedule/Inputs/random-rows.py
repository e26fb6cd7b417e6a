"""Prints random DAGs of row-wise nodes, for planc-kernel-test. usage: random-rows.py SEED COUNT"""
import re
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../kernels"))
from gen import DIMS, Kernel  # noqa: E402

EPS = "eps = 1.0e-06 : f32"


class RandomRows:
    """A kernel whose values are all as wide; nodes take earlier values or new inputs."""

    def __init__(self, choice, name):
        self.choice, self.head = choice, choice.choice([32, 64, 96, 128])
        heads = choice.choice([2, 4, 6])
        self.width = self.head * heads
        dims = dict(DIMS["tiny"], head_dim=self.head, rotary=choice.choice([16, 32]), sections="3, 3, 2")
        self.k = Kernel(name, dims, choice.choice([1, 2, 3, 5]), 4, "cuda_core")
        self.values, self.made, self.has_conv = [], [], False
        for _ in range(choice.randint(1, 6)):
            getattr(self, choice.choice(["add", "add", "gate", "norm", "norm", "head_norm", "l2", "gated_norm", "silu_mul",
                                         "split", "rope", "conv"]))()
        stored = [value for value in self.made if choice.random() < 0.6]
        # What nobody reads is stored: a plan has no node for nothing.
        text = "\n".join(self.k.lines)
        stored += [value for value in self.made if len(re.findall(re.escape(value[0]) + r"\b", text)) == 1]
        self.k.store(*dict.fromkeys(stored or self.made[-1:] or [self.residual()]))

    def value(self):
        if self.values and self.choice.random() < 0.75:
            return self.choice.choice(self.values)
        self.values.append(self.k.edge(self.width, self.choice.choice(["bf16", "bf16", "f32"])))
        return self.values[-1]

    def node(self, word, operands, outputs, attrs="", steps="compute f32"):
        """`outputs`: formats, one a result of the common width."""
        format = operands[0][1].rstrip(">").split("x")[-1]
        results = self.k.op(word, operands, [(self.width, output) for output in outputs], format, steps, attrs=attrs)
        results = [results] if len(outputs) == 1 else list(results)
        self.values += results
        self.made += results
        return results[0]

    def either(self):
        return [self.choice.choice(["bf16", "f32"])]

    def residual(self):
        return self.node("residual_add", [self.value(), self.value()], self.either())

    add = residual

    def gate(self):
        self.node("sigmoid_gate_mul", [self.value(), self.value()], self.either())

    def norm(self):
        self.node("rms_norm", [self.value(), self.k.weight(self.width)], self.either(), f"{EPS}, offset = 1.0 : f32")

    def head_norm(self):
        self.node("qk_norm", [self.value(), self.k.weight(self.head)], self.either(), f"{EPS}, offset = 1.0 : f32")

    def l2(self):
        self.node("l2_norm", [self.value()], ["f32"], f"heads = #plan.dim<2>, head_dim = #plan.dim<{self.head}>, {EPS}")

    def gated_norm(self):
        core = self.value()
        gates = self.k.edge(3 * self.width) if self.choice.random() < 0.5 else self.value()
        self.node("gated_rms_norm", [core, gates, self.k.weight(self.head)], ["bf16"], f"{EPS}, offset = 0.0 : f32")

    def silu_mul(self):
        self.node("silu_mul", [self.k.edge(2 * self.width)], ["f32"])

    def split(self):
        x = self.k.edge(2 * self.width)
        if self.choice.random() < 0.4:
            x = self.k.norm(x)
        self.node("split", [x], ["bf16", "bf16"], f"head_dim = #plan.dim<{self.head}>", "move bf16")

    def rope(self):
        self.node("rope", [self.value(), self.value(), self.k.step("positions")], ["bf16", "bf16"],
                  f"head_dim = #plan.dim<{self.head}>, rotary_dim = {self.k.rotary} : i64, theta = 1.0e+07 : f64, "
                  f"sections = array<i64: {self.k.sections}>")

    def conv(self):
        if self.has_conv:
            return
        self.has_conv = True
        self.node("conv1d_update", [self.value(), self.k.step("slots_in"), self.k.step("slots_out"),
                                    self.k.weight(self.width, 4), self.k.state("slots", self.width, 4)], ["f32"],
                  steps="state f32, compute f32")


def main():
    choice = random.Random(int(sys.argv[1]))
    for index in range(int(sys.argv[2])):
        sys.stdout.write(RandomRows(choice, f"random_{index}").k.text())


main()
