//===- Results.cpp - what a run has produced --------------------------------===//
//
// What both kinds of run share.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-run/Results.h"

#include <cstdlib>
#include <fstream>

using namespace planc;
using namespace planrun;

std::vector<int32_t> planrun::tokensOfStep(const Options &options, const Results &results,
                                           size_t step) {
  std::vector<int32_t> tokens;
  for (size_t list = 0; list < options.tokens.size(); ++list)
    tokens.push_back(step < options.tokens[list].size() ? int32_t(options.tokens[list][step])
                                                        : results.steps[step - 1].argmax[list]);
  return tokens;
}

/// Refuses here what would otherwise only be found after some steps have run.
static Status checkTokens(const bundle::Model &model, const Options &options) {
  if (options.steps() > size_t(model.max_context))
    return inputError("{} tokens a sequence are more than the context of {}", options.steps(),
                      model.max_context);
  for (const std::vector<int64_t> &list : options.tokens)
    for (int64_t token : list)
      if (token < 0 || token >= model.vocab)
        return inputError("token {} is outside the vocabulary of {}", token, model.vocab);
  return {};
}

Result<const bundle::Program *> planrun::chooseProgram(const bundle::Bundle &bundle,
                                                       const Options &options) {
  const bundle::Manifest &manifest = bundle.manifest();
  std::string names;
  for (const bundle::Program &program : manifest.programs)
    names += (names.empty() ? "" : ", ") + program.name;
  const bundle::Program *program = nullptr;
  if (options.program.empty())
    program = manifest.programs.empty() ? nullptr : &manifest.programs.front();
  else
    program = manifest.findProgram(options.program);
  if (!program)
    return fileError(bundle.path(), "there is no program \"{:.80}\", there are: {}",
                     options.program, names.empty() ? "none" : names);
  if (Status status = checkTokens(manifest.model, options); !status.ok())
    return status.takeError();
  return program;
}

void planrun::appendDump(Dump &dump, bundle::Dtype dtype, ByteView bytes) {
  if (dtype != bundle::Dtype::bf16) {
    dump.descr = dtype == bundle::Dtype::f32 ? "<f4" : dtype == bundle::Dtype::i32 ? "<i4" : "<i8";
    dump.data.insert(dump.data.end(), bytes.begin(), bytes.end());
    return;
  }
  dump.descr = "<f4";
  for (size_t i = 0; i < bytes.size(); i += 2) {
    // A float whose upper half is the bf16 value, little-endian.
    const std::byte word[] = {std::byte(0), std::byte(0), bytes[i], bytes[i + 1]};
    dump.data.insert(dump.data.end(), std::begin(word), std::end(word));
  }
}

uint64_t planrun::proportionalBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string line;
  while (std::getline(rollup, line))
    if (line.starts_with("Pss:"))
      return std::strtoull(line.c_str() + 4, nullptr, 10) * 1024;
  return 0;
}
