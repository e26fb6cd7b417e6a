// y[i] = x[i] * 3 + x[i]
gpu.module @kernels {
  gpu.func @scale(%x: !llvm.ptr<1> {llvm.align = 16 : i32, llvm.noalias, llvm.readonly},
                  %y: !llvm.ptr<1> {llvm.align = 16 : i32, llvm.noalias})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %block = arith.constant 128 : i32
    %three = arith.constant 3.0 : f32
    %first = arith.muli %cta, %block : i32
    %i = arith.addi %first, %tid : i32
    %from = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %to = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %from : !llvm.ptr<1> -> f32
    %m = arith.mulf %v, %three : f32
    %s = arith.addf %m, %v : f32
    llvm.store %s, %to : f32, !llvm.ptr<1>
    gpu.return
  }
}
