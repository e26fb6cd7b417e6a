// y[0] = sum of 8 vectors of x, element by element, through shared memory
gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x vector<4xf32>>
  gpu.func @sum(%x: !llvm.ptr<1> {llvm.align = 16 : i32, llvm.noalias, llvm.readonly},
                %y: !llvm.ptr<1> {llvm.align = 16 : i32, llvm.noalias})
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<4xf32>) : i32 {
      %from = llvm.getelementptr %x[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
      %v = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %s = arith.addf %acc, %v : vector<4xf32>
      scf.yield %s : vector<4xf32>
    }
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %mine = llvm.getelementptr %tile[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xf32>
    llvm.store %sum, %mine {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
    gpu.barrier
    %first = llvm.load %tile {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    llvm.store %first, %y {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    gpu.return
  }
}
