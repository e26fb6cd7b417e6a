// RUN: plan-opt %s --split-input-file --verify-diagnostics

// Words that no attribute or type knows.

// expected-error @below {{'fp7' is not a format}}
"t"() {a = #plan.precision<weight = fp7>} : () -> ()

// -----

// expected-error @below {{expected 'weight', 'act' or 'out', found 'in'}}
"t"() {a = #plan.precision<in = bf16>} : () -> ()

// -----

// expected-error @below {{'round' is not a step}}
"t"() {a = #plan.steps<round bf16>} : () -> ()

// -----

// expected-error @below {{step 'mma' takes two formats}}
"t"() {a = #plan.steps<mma bf16>} : () -> ()

// -----

// expected-error @below {{step 'act' takes one format}}
"t"() {a = #plan.steps<act bf16 * bf16>} : () -> ()

// -----

// expected-error @below {{expected 'slots' or 'paged', found 'ring'}}
"t"() {a = !plan.state<ring, 4 x 4, f32>} : () -> ()

// -----

// expected-error @below {{expected valid keyword}}
"t"() {a = !plan.edge<n x *, f32>} : () -> ()
