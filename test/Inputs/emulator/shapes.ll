; What LLVM makes of LLVM IR rather than of CUDA: an indexed branch, loops that it rotates, structures by value, and
; pointers to shared memory in 64 or in 32 bits. `print-ptx llc shapes` prints it; FLAGS as in llc-now.test.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%pair = type { i64, double, i32 }

@tile = internal addrspace(3) global [64 x i32] undef, align 4
@steps = internal addrspace(1) constant [4 x i32] [i32 1, i32 3, i32 5, i32 7], align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

; y[t]: one of eight functions of x[t], chosen by x[t] & 7 (or 8 and more: -1).
define ptx_kernel void @switches(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %t
  %v = load i32, ptr addrspace(1) %px
  %which = and i32 %v, 15
  switch i32 %which, label %default [
    i32 0, label %add
    i32 1, label %double
    i32 2, label %negate
    i32 3, label %square
    i32 4, label %halve
    i32 5, label %flip
    i32 6, label %loop
    i32 7, label %store
  ]
add:
  %a = add i32 %v, 100
  br label %store
double:
  %b = shl i32 %v, 1
  br label %store
negate:
  %c = sub i32 0, %v
  br label %store
square:
  %d = mul i32 %v, %v
  br label %store
halve:
  %e = sdiv i32 %v, 2
  br label %store
flip:
  %f = xor i32 %v, -1
  br label %store
loop:
  %n = phi i32 [ %which, %0 ], [ %less, %loop ]
  %s = phi i32 [ %v, %0 ], [ %more, %loop ]
  %more = add i32 %s, %n
  %less = add i32 %n, -1
  %again = icmp sgt i32 %less, 0
  br i1 %again, label %loop, label %store
default:
  br label %store
store:
  %r = phi i32 [ %a, %add ], [ %b, %double ], [ %c, %negate ], [ %d, %square ], [ %e, %halve ], [ %f, %flip ],
    [ %more, %loop ], [ -1, %default ], [ %v, %0 ]
  store i32 %r, ptr addrspace(1) %py
  ret void
}

; Two loops, the condition at the head of each: sum over i < x[t] of sum over j < i of j ^ steps[i & 3].
define ptx_kernel void @rotated(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %t
  %n = load i32, ptr addrspace(1) %px
  br label %outer
outer:
  %i = phi i32 [ 0, %0 ], [ %i1, %close ]
  %s = phi i32 [ 0, %0 ], [ %s1, %close ]
  %go = icmp slt i32 %i, %n
  br i1 %go, label %begin, label %end
begin:
  %at = and i32 %i, 3
  %pstep = getelementptr [4 x i32], ptr addrspace(1) @steps, i32 0, i32 %at
  %step = load i32, ptr addrspace(1) %pstep
  br label %inner
inner:
  %j = phi i32 [ 0, %begin ], [ %j1, %body ]
  %s1 = phi i32 [ %s, %begin ], [ %s2, %body ]
  %on = icmp slt i32 %j, %i
  br i1 %on, label %body, label %close
body:
  %mixed = xor i32 %j, %step
  %s2 = add i32 %s1, %mixed
  %j1 = add i32 %j, 1
  br label %inner
close:
  %i1 = add i32 %i, 1
  br label %outer
end:
  store i32 %s, ptr addrspace(1) %py
  ret void
}

; A structure by value into a function that is not inlined and one back; a kernel's parameter by value.
define internal %pair @swing(ptr byval(%pair) align 8 %p, i32 %by) noinline {
  %pa = getelementptr %pair, ptr %p, i32 0, i32 0
  %pb = getelementptr %pair, ptr %p, i32 0, i32 1
  %pc = getelementptr %pair, ptr %p, i32 0, i32 2
  %a = load i64, ptr %pa
  %b = load double, ptr %pb
  %c = load i32, ptr %pc
  %wide = sext i32 %by to i64
  %a1 = mul i64 %a, %wide
  %f = sitofp i32 %by to double
  %b1 = fadd double %b, %f
  %c1 = sub i32 %c, %by
  %r0 = insertvalue %pair poison, i64 %a1, 0
  %r1 = insertvalue %pair %r0, double %b1, 1
  %r2 = insertvalue %pair %r1, i32 %c1, 2
  ret %pair %r2
}
define ptx_kernel void @values(ptr byval(%pair) align 8 %p, ptr addrspace(1) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %copy = alloca %pair, align 8
  %whole = load %pair, ptr %p
  store %pair %whole, ptr %copy
  %q = call %pair @swing(ptr byval(%pair) align 8 %copy, i32 %t)
  %py = getelementptr %pair, ptr addrspace(1) %y, i32 %t
  store %pair %q, ptr addrspace(1) %py
  ret void
}

; y[t] = x[63 - t] through shared memory, whose pointer is also taken as a generic one.
define ptx_kernel void @mirror(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %v = load i32, ptr addrspace(1) %px
  %ps = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %t
  store i32 %v, ptr addrspace(3) %ps
  call void @llvm.nvvm.barrier0()
  %other = sub i32 63, %t
  %po = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %other
  %pg = addrspacecast ptr addrspace(3) %po to ptr
  %odd = and i32 %t, 1
  %is = icmp ne i32 %odd, 0
  %pglobal = getelementptr i32, ptr addrspace(1) %x, i32 %other
  %pgg = addrspacecast ptr addrspace(1) %pglobal to ptr
  %from = select i1 %is, ptr %pg, ptr %pgg
  %w = load i32, ptr %from
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store i32 %w, ptr addrspace(1) %py
  ret void
}
