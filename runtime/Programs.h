//===- Programs.h - a bundle's programs, before anything is loaded ----------===//
//
// Which program serves, what it would take, and whether a device could run it: the questions that
// have an answer before the first allocation.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_PROGRAMS_H
#define PLANRT_PROGRAMS_H

#include "runtime/Session.h"

namespace planrt {

/// Rows of other modes are not the newest tokens of different sequences.
bool runsTokens(const planc::bundle::Program &program);

/// Of the programs of `mode` (null: any that runsTokens) with at least `rows` rows the one with the
/// fewest, and of equals the first.
planc::Result<uint32_t> findProgram(const planc::bundle::Bundle &bundle, const std::string *mode,
                                    uint32_t rows);

/// Bytes that a program takes with a session and one step.
struct ProgramMemory {
  uint64_t weights = 0, hostWeights = 0, states = 0, kv = 0, workspace = 0, scratch = 0;

  uint64_t onDevice() const { return weights + states + kv + workspace + scratch; }
};
planc::Result<ProgramMemory> memoryOf(const planc::bundle::Manifest &manifest,
                                      const planc::bundle::Program &program,
                                      const SessionOptions &session);

/// Has the device as much memory free? `what` needs it.
planc::Status checkMemory(const Device &device, uint64_t bytes, std::string_view what);

/// Has the bundle an image of every kernel of the program that the device and its driver take?
planc::Status checkImages(const planc::bundle::Bundle &bundle, const Device &device,
                          const planc::bundle::Program &program);

} // namespace planrt

#endif // PLANRT_PROGRAMS_H
