//===- Codegen.cpp - jobs through cache, threads and assembler --------------===//
//
// The thread that calls `compile` looks jobs up and makes the sources of those that are missing,
// since sources come from IR that it owns; workers lower and assemble them. Sources travel as text,
// so that a worker has contexts of its own and the order of work leaves no trace in a result.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Codegen.h"
#include "lib/Codegen/Assembler.h"
#include "lib/Codegen/Cache.h"
#include "lib/Codegen/Lower.h"
#include "lib/Target/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <condition_variable>
#include <deque>
#include <link.h>
#include <map>
#include <thread>

using namespace llvm;
using namespace planc;

namespace {
/// A job that was not in the cache.
struct Work {
  size_t index;    // of the job
  std::string key; // empty: not to be stored
  KernelSource source;
};

/// Closed once the last one is in.
class Queue {
public:
  void push(Work work) {
    std::lock_guard<std::mutex> lock(mutex);
    items.push_back(std::move(work));
    changed.notify_one();
  }

  void close() {
    std::lock_guard<std::mutex> lock(mutex);
    closed = true;
    changed.notify_all();
  }

  std::optional<Work> pop() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return closed || !items.empty(); });
    if (items.empty())
      return std::nullopt;
    Work work = std::move(items.front());
    items.pop_front();
    return work;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> items;
  bool closed = false;
};
} // namespace

/// The file that this code was loaded from: a program, or the library that a program links.
static std::string ownCodeFile() {
  std::string file;
  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *result) {
        auto here = reinterpret_cast<uintptr_t>(&ownCodeFile);
        for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
          const auto &segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD ||
              here - (object->dlpi_addr + segment.p_vaddr) >= segment.p_memsz)
            continue;
          // The program itself is the object without a name.
          *static_cast<std::string *>(result) =
              *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
          return 1;
        }
        return 0;
      },
      &file);
  return file;
}

/// Changes whenever the compiler's own code does: kernels are looked up before the code that makes
/// them has run. Empty if it cannot be told, which rules the cache out.
static std::string ownCodeVersion() {
  auto code = MemoryBuffer::getFile(ownCodeFile(), false, false);
  return code ? utohexstr(xxh3_64bits((*code)->getBuffer())) : std::string();
}

struct Codegen::Impl {
  CodegenOptions options;
  std::unique_ptr<Assembler> assembler; // null: PTX alone
  std::optional<KernelCache> cache;
  std::string version; // of all code that takes part

  std::string keyOf(const KernelJob &job, StringRef identity) const;
  KernelResult finish(const KernelJob &job, Work &work, Lowerer &lowerer);
};

Codegen::Codegen(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Codegen::~Codegen() = default;

Expected<std::unique_ptr<Codegen>> Codegen::create(const CodegenOptions &options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (options.stage == CodegenStage::Cubin) {
    auto assembler = Assembler::find(options.toolkit);
    if (!assembler)
      return assembler.takeError();
    impl->assembler = std::move(*assembler);
  }
  std::string code = options.useCache ? ownCodeVersion() : std::string();
  if (!code.empty()) {
    impl->cache.emplace(options.cacheDir);
    impl->version = code + "\n" + backend() + "\n" +
                    (impl->assembler ? impl->assembler->version : "PTX") + "\n" +
                    std::to_string(int(options.stage)) + "\n";
  }
  return std::unique_ptr<Codegen>(new Codegen(std::move(impl)));
}

std::string Codegen::backend() { return "LLVM " LLVM_VERSION_STRING; }

const std::string &Codegen::assembler() const {
  static const std::string none;
  return impl->assembler ? impl->assembler->version : none;
}

std::string Codegen::warning() const {
  return impl->cache ? impl->cache->warning() : std::string();
}

std::string Codegen::Impl::keyOf(const KernelJob &job, StringRef identity) const {
  // The table's row is part of the compiler's own code, so its name stands for it.
  return KernelCache::key(version + std::string(job.target->name) + "\n" + identity.str());
}

KernelResult Codegen::Impl::finish(const KernelJob &job, Work &work, Lowerer &lowerer) {
  auto failed = [&](Error error) {
    return KernelResult{std::nullopt, "kernel \"" + job.name + "\" (" + job.target->arch() +
                                          "): " + toString(std::move(error))};
  };
  KernelImage image;
  image.entry = std::move(work.source.entry);
  image.facts = std::move(work.source.facts);
  auto text = lowerer.lower(work.source.module, *job.target, options.stage);
  if (!text)
    return failed(text.takeError());
  image.ptx = std::move(*text);
  if (options.stage != CodegenStage::Nvvm)
    if (Error error = checkPtx(image.ptx, image.entry))
      return failed(std::move(error));
  if (assembler) {
    auto output = assembler->assemble(image.ptx, *job.target);
    if (!output)
      return failed(output.takeError());
    image.cubin = std::move(output->cubin);
    image.figures = output->figures;
  }
  if (!work.key.empty())
    cache->store(work.key, image);
  return {std::move(image), ""};
}

std::vector<KernelResult> Codegen::compile(const std::vector<KernelJob> &jobs) {
  std::vector<KernelResult> results(jobs.size());
  Queue queue;
  std::vector<std::thread> workers;
  auto work = [&] {
    Lowerer lowerer;
    while (auto item = queue.pop())
      results[item->index] = impl->finish(jobs[item->index], *item, lowerer);
  };
  size_t limit =
      impl->options.threads ? impl->options.threads : std::thread::hardware_concurrency();

  for (size_t index = 0; index < jobs.size(); ++index) {
    const KernelJob &job = jobs[index];
    std::string key;
    std::optional<KernelSource> source;
    if (impl->cache && job.identity.empty()) {
      if ((source = job.emit()))
        key = impl->keyOf(job, source->module + "\n" + source->facts);
      else
        continue;
    } else if (impl->cache) {
      key = impl->keyOf(job, job.identity);
    }
    if (!key.empty())
      if (auto image = impl->cache->load(key)) {
        results[index].image = std::move(image);
        continue;
      }
    if (!source && !(source = job.emit()))
      continue;
    queue.push({index, std::move(key), std::move(*source)});
    if (workers.size() < std::max<size_t>(limit, 1))
      workers.emplace_back(work);
  }
  queue.close();
  for (std::thread &worker : workers)
    worker.join();
  return results;
}
