//===- Tile.cpp - what all contraction schedules do alike ------------------===//

#include "lib/Schedule/Contraction/Tile.h"

using namespace mlir;
using namespace planc;
using namespace planc::contraction;

Value Sums::address(KernelBuilder &b, Value split, Value row, Value column) const {
  Value index = b.add(b.mul(b.add(b.mul(split, rows), row), columns), column);
  return b.at(b.at(b.dynamicShared(), b.i32(offset), 1), index, 4);
}

Value contraction::matrixColumn(KernelBuilder &b, const Component &component, const Dot &dot,
                                const Tile &tile, Value local) {
  if (dot.gate)
    return b.i32(0);
  const ColumnMap &map = component.map;
  Value part = b.i32(0), element = local;
  if (map.parts > 1) {
    part = b.div(local, tile.elements);
    element = b.rem(local, tile.elements);
  }
  element = b.add(tile.firstElement, element);
  if (map.elements % tile.elements)
    element = b.min(element, b.i32(map.elements - 1));
  return map.column(b, element, part);
}

void contraction::forThreads(KernelBuilder &b, int64_t count, unsigned threads,
                             llvm::function_ref<void(Value)> body) {
  Value thread = b.threadId();
  if (count > threads)
    return b.forLoop(thread, b.i32(count), b.i32(threads), body);
  if (count == threads)
    return body(thread);
  b.ifThen(b.lt(thread, count), [&] { body(thread); });
}

static void dispatchFrom(KernelBuilder &b, ArrayRef<int64_t> ctas, size_t index, Value cta,
                         llvm::function_ref<void(size_t, Value)> body) {
  if (index + 1 == ctas.size())
    return body(index, cta);
  b.ifElse(
      b.lt(cta, ctas[index]), [&] { body(index, cta); },
      [&] { dispatchFrom(b, ctas, index + 1, b.sub(cta, ctas[index]), body); });
}

void contraction::dispatch(KernelBuilder &b, ArrayRef<int64_t> ctas,
                           llvm::function_ref<void(size_t, Value)> body) {
  dispatchFrom(b, ctas, 0, b.blockId(), body);
}

void contraction::forRowTiles(KernelBuilder &b, int64_t total, Tile tile,
                              llvm::function_ref<void(const Tile &)> body) {
  int64_t rows = tile.rows, full = total / rows, rest = total % rows;
  tile.follows = tile.repeats = full > 1;
  auto from = [&](Value row) {
    tile.firstRow = row;
    body(tile);
  };
  if (full == 1)
    from(b.i32(0));
  else
    b.forLoop(b.i32(0), b.i32(full * rows), b.i32(rows), from);
  if (!rest)
    return;
  tile.rows = rest;
  tile.follows = true;
  tile.repeats = false;
  from(b.i32(full * rows));
}

Values contraction::activationAt(KernelBuilder &b, Evaluator &evaluator, const Dot &dot, Value row,
                                 Value k, int64_t count) {
  auto node = cast<plan::PlanNode>(const_cast<Dot &>(dot).op.getOperation());
  Values values;
  for (int64_t i = 0; i < count; i += 8) {
    unsigned width = std::min<int64_t>(count, 8);
    values.append(evaluator.operand(node, 0, {row, b.add(k, i), width}));
  }
  bool narrows =
      dot.activation == plan::Format::BF16 && plan::storedFormat(dot.x()) != plan::Format::BF16;
  return narrows ? b.rounded(plan::Format::BF16, values) : values;
}

/// The sums of a dot at a chunk, added over the splits.
static Values sumsAt(KernelBuilder &b, const Component &component, const Dot &dot,
                     const Sums &layout, const Tile &tile, Chunk chunk) {
  Value row = b.sub(chunk.row, b.mul(tile.firstRow, component.rowsPerElementRow(dot)));
  Value column = b.i32(0);
  if (!dot.gate) {
    auto [element, part] = component.map.place(b, chunk.column);
    column = b.add(b.sub(element, tile.firstElement), b.mul(part, tile.elements));
  }
  Values sums;
  for (unsigned i = 0; i < chunk.count; ++i) {
    Value sum;
    for (int64_t split = 0; split < layout.splits; ++split) {
      Value address = layout.address(b, b.i32(split), row, b.add(column, i));
      Value partial = b.loadF32(address, plan::Format::F32, 1).front();
      sum = sum ? b.fadd(sum, partial) : partial;
    }
    sums.push_back(sum);
  }
  return sums;
}

/// Stores what a row of elements makes at `element`, `width` side by side.
static void storeElement(Evaluator &evaluator, const Component &component, Value row, Value element,
                         unsigned width) {
  KernelBuilder &b = evaluator.builder();
  const ColumnMap &map = component.map;
  for (Value output : component.outputs) {
    int64_t rows = rowsOf(output) / component.rows, columns = columnsOf(output);
    for (int64_t i = 0; i < rows; ++i) {
      Value outputRow = rows == 1 ? row : b.add(b.mul(row, rows), i);
      if (columns == map.elements)
        evaluator.store(output, {outputRow, element, width});
      else if (columns == map.columns())
        for (int64_t part = 0; part < map.parts; ++part)
          evaluator.store(output, {outputRow, map.column(b, element, part), width});
      else // one value a row: the first element's thread stores it
        b.ifThen(b.eq(element, 0), [&] { evaluator.store(output, {outputRow, b.i32(0), 1}); });
    }
  }
}

void contraction::emitEpilogue(KernelBuilder &b, const Component &component, ArrayRef<Sums> sums,
                               const NormFactors &norms, const Tile &tile, unsigned threads,
                               unsigned width) {
  Evaluator evaluator(b);
  norms.provide(evaluator);
  for (auto [dot, layout] : llvm::zip(component.dots, sums))
    evaluator.provide(dot.result(), [&b, &component, &dot, &layout, &tile](Chunk chunk) {
      return sumsAt(b, component, dot, layout, tile, chunk);
    });
  int64_t perRow = tile.elements / width;
  forThreads(b, tile.rows * perRow, threads, [&](Value index) {
    Value row = tile.rows == 1 ? tile.firstRow : b.add(tile.firstRow, b.div(index, perRow));
    Value local = b.mul(tile.rows == 1 ? index : b.rem(index, perRow), width);
    Value element = b.add(tile.firstElement, local);
    if (component.map.elements % tile.elements == 0)
      return storeElement(evaluator, component, row, element, width);
    b.ifThen(b.lt(element, component.map.elements),
             [&] { storeElement(evaluator, component, row, element, width); });
  });
}
