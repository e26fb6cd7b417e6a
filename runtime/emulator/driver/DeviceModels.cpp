//===- DeviceModels.cpp - the devices that can be reported ----------------===//
//
// PLANEMU_TARGET and planemu_set_target choose one of these.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

using namespace planemu;

static constexpr std::uint64_t GiB = 1ull << 30;
static constexpr int KiB = 1 << 10, MiB = 1 << 20;
static constexpr int NominalClock = 1000000; // kHz

// Sizes: CUDA C++ Programming Guide, "Compute Capabilities"; counts: the vendors' data sheets.
static constexpr DeviceModel Models[] = {
    {"gb10", "Emulated GB10", 121, 48, 99 * KiB, 100 * KiB, 24 * MiB, 1536, 24, true, 120 * GiB},
    {"h200", "Emulated H200", 90, 132, 227 * KiB, 228 * KiB, 50 * MiB, 2048, 32, false, 140 * GiB},
    {"sm_80", "Emulated sm_80 GPU", 80, 108, 163 * KiB, 164 * KiB, 40 * MiB, 2048, 32, false,
     80 * GiB},
    {"sm_86", "Emulated sm_86 GPU", 86, 84, 99 * KiB, 100 * KiB, 6 * MiB, 1536, 16, false,
     24 * GiB},
    {"sm_87", "Emulated sm_87 GPU", 87, 16, 163 * KiB, 164 * KiB, 4 * MiB, 1536, 16, true,
     60 * GiB},
    {"sm_89", "Emulated sm_89 GPU", 89, 142, 99 * KiB, 100 * KiB, 96 * MiB, 1536, 24, false,
     48 * GiB},
    {"sm_90", "Emulated sm_90 GPU", 90, 132, 227 * KiB, 228 * KiB, 50 * MiB, 2048, 32, false,
     80 * GiB},
    {"sm_100", "Emulated sm_100 GPU", 100, 148, 227 * KiB, 228 * KiB, 126 * MiB, 2048, 32, false,
     180 * GiB},
    {"sm_103", "Emulated sm_103 GPU", 103, 148, 227 * KiB, 228 * KiB, 126 * MiB, 2048, 32, false,
     270 * GiB},
    {"sm_120", "Emulated sm_120 GPU", 120, 170, 99 * KiB, 100 * KiB, 96 * MiB, 1536, 24, false,
     32 * GiB},
    {"sm_121", "Emulated sm_121 GPU", 121, 48, 99 * KiB, 100 * KiB, 24 * MiB, 1536, 24, true,
     120 * GiB},
};

const DeviceModel *planemu::findDeviceModel(const std::string &key) {
  for (const DeviceModel &model : Models)
    if (key == model.key)
      return &model;
  return nullptr;
}

std::string planemu::knownDeviceModels() {
  std::string known;
  for (const DeviceModel &row : Models)
    known += std::string(known.empty() ? "" : ", ") + row.key;
  return known;
}

bool planemu::deviceAttribute(const DeviceModel &m, CUdevice_attribute attribute, int &value) {
  switch (attribute) {
#define PLANEMU_ATTRIBUTE(Name, Number, Value)                                                     \
  case Number:                                                                                     \
    value = Value;                                                                                 \
    return true;
#include "runtime/emulator/driver/DeviceAttributes.def"
  }
  return false;
}
