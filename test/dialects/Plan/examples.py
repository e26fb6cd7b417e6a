"""Prints every ```mlir example of the dialect's .td files as IR that plan-opt can read.

An example stands alone in the documentation, so the values it reads are made here: each becomes the result of
an unrealized_conversion_cast of the type that the example's signature gives it. An op without an example is an error.
"""
import pathlib
import re
import sys
import textwrap


def split_types(text):
    """Splits `A, B<c, d>` at the commas that stand outside brackets."""
    parts, depth, current = [], 0, ""
    for i, char in enumerate(text):
        depth += char in "<([" or 0
        depth -= char in "])" or (char == ">" and text[i - 1] != "-")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [p for p in parts + [current.strip()] if p]


def signature(text):
    """The operand types of `... : (A, B) -> C`: the outermost `: (` .. `) ->` of the last line or the group head."""
    start = text.index(": (") + 3
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return split_types(text[start:end - 1])


def complete(example):
    head = example.split("{\n^bb0")[0].split("{\n    ^bb0")[0]
    head = re.sub(r"\s+", " ", head)
    names = re.search(r"plan\.\w+ (?:@\w+ )?((?:%\w+(?:, )?)+)", head) or re.search(r"\(((?:%\w+(?:, )?)+)\) :", head)
    if not names or ": (" not in head:
        return example
    makes = [f"%{name.strip(' %')} = builtin.unrealized_conversion_cast to {kind}\n"
             for name, kind in zip(names.group(1).split(","), signature(head))]
    return "".join(dict.fromkeys(makes)) + example


def main(folder):
    examples = 0
    for path in sorted(pathlib.Path(folder).rglob("*.td")):
        for record in re.split(r"\n(?=def )", path.read_text()):
            found = re.search(r"```mlir\n(.*?)```", record, re.S)
            name = re.match(r"def Plan_(\w+)Op :", record)
            if not name or name.group(1) == "Yield":
                continue
            if not found:
                sys.exit(f"{path}: {name.group(1)} has no example")
            text = textwrap.dedent(found.group(1))
            inside = re.match(r"plan\.(weight|state|graph|kernel) ", text)
            print(("// -----\n" if examples else "") + "// " + name.group(1))
            print(text if inside else "module {\n" + PRELUDE + "plan.graph @g mode \"decode\" rows 1 {\n"
                  + complete(text) + "}\n}")
            examples += 1


PRELUDE = """plan.weight @"l0.moe_ffn.router" : !plan.weight<256 x 2048, bf16> parts []
plan.state @"l3.attn.k" : !plan.state<paged, 2 x 64, bf16>
plan.kernel @residual_add__0 rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  plan.yield %0 : tensor<1x256xbf16>
}
"""

if __name__ == "__main__":
    main(sys.argv[1])
