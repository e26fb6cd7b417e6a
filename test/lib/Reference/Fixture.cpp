//===- Fixture.cpp - a checkpoint's tensors as a plan's weight operands ----===//

#include "Fixture.h"

namespace planc::reference {

static void append(Bytes &to, const Bytes &from) { to.insert(to.end(), from.begin(), from.end()); }

/// bf16 bytes as f32 bytes.
static Bytes widen(const Bytes &narrow) {
  Bytes wide(narrow.size() * 2);
  for (size_t i = 0; i < narrow.size() / 2; ++i) {
    wide[4 * i + 2] = narrow[2 * i];
    wide[4 * i + 3] = narrow[2 * i + 1];
  }
  return wide;
}

Result<LoadedWeight> loadWeight(plan::WeightOp weight, const SafetensorsFile &file) {
  auto type = llvm::cast<plan::WeightType>(weight.getType());
  int64_t experts = type.getShape().size() == 3 ? type.getShape()[0] : 1;
  Bytes data, scales;
  for (int64_t e = 0; e < experts; ++e)
    for (mlir::Attribute attr : weight.getParts()) {
      auto part = llvm::cast<plan::PartAttr>(attr);
      std::string name = part.getTensor().str();
      if (size_t at = name.find("{e}"); at != std::string::npos)
        name.replace(at, 3, std::to_string(e));
      const TensorInfo *info = file.find(name);
      if (!info)
        return inputError("{}: no tensor \"{}\"", file.path(), name);
      Result<Bytes> bytes = file.read(*info);
      if (!bytes.ok())
        return bytes.takeError();
      bool toF32 = part.getConvert() == plan::Format::F32 && info->dtype == "BF16";
      append(part.getScales() ? scales : data, toF32 ? widen(*bytes) : *bytes);
    }
  LoadedWeight loaded;
  loaded.data = std::move(data);
  loaded.scales.resize(scales.size() / sizeof(float));
  std::memcpy(loaded.scales.data(), scales.data(), scales.size());
  return loaded;
}

} // namespace planc::reference
