//===- Passes.td - the passes over the plan dialect -----------------------===//

#ifndef PLANC_PASSES
#define PLANC_PASSES

include "mlir/Pass/PassBase.td"

def BindDims : Pass<"plan-bind-dims", "::mlir::ModuleOp"> {
  let summary = "Replace symbolic dims by the model's integers";
  let description = [{
    Names are looked up in the module's `plan.dims`; `n` is the graph's row count. Edges become builtin tensors, dims of
    weights, states and attributes integers. A dim that is unknown, zero or too large is an error; so is a node whose
    shapes do not fit each other. All are reported.
  }];
}

def VerifySteps : Pass<"plan-verify-steps", "::mlir::ModuleOp"> {
  let summary = "Check every node's steps against its op, its precision and its edges";
  let description = [{
    Passes and schedules after this one rely on its rules and do not check them again. They are listed at the top of
    `VerifySteps.cpp`.
  }];
}

def FormGroups : Pass<"plan-form-groups", "::mlir::ModuleOp"> {
  let summary = "Put the nodes of each declared group into a region of its own";
  let description = [{
    `plan.graph` holds `plan.group` ops in the order of the plan's groups afterwards. What a group stores are its
    results, what it reads its operands; fused edges stay inside. A grouping that no order of kernel starts can carry
    out is refused, with all its violations.
  }];
}

def OutlineKernels : Pass<"plan-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Let structurally equal groups share one kernel";
  let description = [{
    Device groups become `plan.launch` ops, their content `plan.kernel` symbols without any node's identity. Groups of
    the host stay `plan.group`. A group with nothing to do at the graph's row count becomes a launch without a kernel
    and with a note. A kernel's name tells its content and ends in a digest of it.
  }];
  let statistics = [Statistic<"numKernels", "kernels", "Kernels made">,
                    Statistic<"numLaunches", "launches", "Launches of kernels">];
}

def AssignMemory : Pass<"plan-assign-memory", "::mlir::ModuleOp"> {
  let summary = "Give every stored edge its place in one workspace";
  let description = [{
    Edges that never live at the same time may share bytes. The result is the graph's `plan.buffers`, one
    `#plan.buffer` per result of its launches and groups, in their order, and `plan.workspace`, `plan.workspace_unshared`,
    the bytes of the two layouts.
  }];
}

def VerifyMemory : Pass<"plan-verify-memory", "::mlir::ModuleOp"> {
  let summary = "Prove that no two live edges share bytes of the workspace";
  let description = [{
    Finds lifetimes anew from the launch list, and shares no code with `--plan-assign-memory`.
  }];
}

#endif // PLANC_PASSES
