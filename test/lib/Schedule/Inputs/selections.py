"""Prints top_k and argmax kernels of many shapes. usage: selections.py ROWS"""
import sys

rows = int(sys.argv[1])
for experts, chosen, format in ((256, 8, "bf16"), (8, 2, "bf16"), (37, 5, "bf16"), (1024, 8, "bf16"), (64, 64, "bf16"),
                                (200, 40, "f32"), (512, 1, "f32")):
    x, w, i = (f"tensor<{rows}x{n}x{f}>" for n, f in ((experts, format), (chosen, "f32"), (chosen, "i32")))
    print(f'''plan.kernel @top_{chosen}_of_{experts}_{format} rows {rows} compute "memory" numerics "reference" {{
^bb0(%l: {x}):
  %w, %i = plan.top_k %l precision<act = {format}, out = [f32, i32]> steps<score f32> : ({x}) -> ({w}, {i})
  plan.yield %w, %i : {w}, {i}
}}''')
for vocab, format in ((512, "bf16"), (1001, "bf16"), (20000, "f32"), (248320, "bf16")):
    x = f"tensor<{rows}x{vocab}x{format}>"
    print(f'''plan.kernel @argmax_{vocab}_{format} rows {rows} compute "memory" numerics "reference" {{
^bb0(%l: {x}):
  %t = plan.argmax %l precision<act = {format}, out = [i32]> steps<compare {format}> : ({x}) -> tensor<{rows}xi32>
  plan.yield %t : tensor<{rows}xi32>
}}''')
