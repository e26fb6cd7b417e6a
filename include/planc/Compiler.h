//===- Compiler.h - execution plans to bundles ------------------------------===//
//
// The compiler as a library. A whole program:
//
//   planc::CompilerOptions options;
//   options.targets = {"gb10", "h200"};
//   planc::Compiler compiler(options, [](const planc::Diagnostic &diagnostic) {
//     std::cerr << planc::toText(diagnostic) << '\n';
//   });
//   std::string bundle;
//   if (compiler.compile({{"plan.json", planText}}, {"config.json", configText}, bundle) !=
//   planc::Outcome::Ok)
//     return 1;
//
// Inputs and outputs are bytes in memory; names of inputs serve messages alone and never enter an
// output. The same inputs and options give the same bytes, whatever the machine, the number of
// threads and the state of the cache, up to cubins, which depend on the assembler's version. A
// compiler may be used again; by one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_COMPILER_H
#define PLANC_COMPILER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace planc {

/// Where compilation stops; all but a bundle are text.
enum class Emit {
  Plan,    ///< the plan dialect as imported, dims still symbolic
  Groups,  ///< dims bound, one region per declared group
  Kernels, ///< equal groups share a kernel, memory is assigned
  Nvvm,    ///< the kernels in the NVVM dialect
  Ptx,     ///< the kernels' PTX
  Bundle,
};

struct CompilerOptions {
  Emit emit = Emit::Bundle;
  /// Names of lib/Target's table: products or architectures. No two of one architecture.
  std::vector<std::string> targets = {"gb10"};
  /// Positions a sequence can have; without it the model's limit, at most 32768.
  std::optional<int64_t> maxContext;
  /// Positions in one block of the paged cache, a power of two.
  int64_t kvBlock = 16;
  /// Threads that compile kernels; 0 for one per core.
  unsigned threads = 0;
  /// A CUDA toolkit's folder, "none" for PTX alone, or "" to look at the usual places.
  std::string toolkit;
  /// Fail if a kernel gets no cubin.
  bool requireCubin = false;
  /// Folder of the kernel cache; "" for the user's own.
  std::string cacheDir;
  bool useCache = true;
  /// Take groups whose numerics contract is `differs`.
  bool allowDiffers = false;
  /// Whoever compiles runs the kernels to prove their contracts (lib/Verify), so one that can be seen
  /// not to hold is not refused beforehand.
  bool contractsRun = false;
};

/// An input file, already read.
struct Source {
  std::string name; ///< for messages
  std::string text;
};

enum class Severity { Error, Warning, Remark, Note };

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string location; ///< "plan.json#/nodes/12", or empty
  std::string message;  ///< lower case, no final period
  std::vector<Diagnostic> notes;
};

/// `plan.json#/nodes/12: error: ...`, with its notes on lines of their own.
std::string toText(const Diagnostic &diagnostic);

/// One JSON object without line breaks: severity, location, message, notes.
std::string toJson(const Diagnostic &diagnostic);

/// How a compilation ended; the values are planc's exit codes.
enum class Outcome {
  Ok = 0,
  Rejected = 1,    ///< an input is wrong or cannot be compiled
  Usage = 2,       ///< an option is
  Environment = 3, ///< something the options ask for is not on this machine
};

/// "0.1.0", as it stands in every bundle.
std::string version();

class Compiler {
public:
  Compiler(CompilerOptions options, std::function<void(const Diagnostic &)> report);

  /// Compiles the plans, arms of one model, each to a program of its own. `output` receives the
  /// bundle or the text, and is empty unless the outcome is Ok. Everything else that is worth
  /// saying goes to `report`, errors all at once.
  Outcome compile(const std::vector<Source> &plans, const Source &config, std::string &output);

private:
  CompilerOptions options;
  std::function<void(const Diagnostic &)> report;
};

} // namespace planc

#endif // PLANC_COMPILER_H
