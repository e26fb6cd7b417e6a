//===- PlanOps.td - all ops of the plan dialect ---------------------------===//

#ifndef PLAN_OPS
#define PLAN_OPS

include "dialects/Plan/Ops/Structure.td"
include "dialects/Plan/Ops/Norm.td"
include "dialects/Plan/Ops/Linear.td"
include "dialects/Plan/Ops/Moe.td"
include "dialects/Plan/Ops/Gdn.td"
include "dialects/Plan/Ops/Attention.td"
include "dialects/Plan/Ops/Head.td"

#endif // PLAN_OPS
