// RUN: plan-opt %s --split-input-file --verify-diagnostics

// Words that no attribute or type knows.

// expected-error @below {{'fp7' is not a format}}
module attributes {a = #plan.precision<weight = fp7>} {}

// -----

// expected-error @below {{expected 'weight', 'act' or 'out', found 'in'}}
module attributes {a = #plan.precision<in = bf16>} {}

// -----

// expected-error @below {{'round' is not a step}}
module attributes {a = #plan.steps<round bf16>} {}

// -----

// expected-error @below {{step 'mma' takes two formats}}
module attributes {a = #plan.steps<mma bf16>} {}

// -----

// expected-error @below {{step 'act' takes one format}}
module attributes {a = #plan.steps<act bf16 * bf16>} {}

// -----

// expected-error @below {{expected 'slots' or 'paged', found 'ring'}}
module attributes {a = !plan.state<ring, 4 x 4, f32>} {}

// -----

// expected-error @below {{expected valid keyword}}
module attributes {a = !plan.edge<n x *, f32>} {}
