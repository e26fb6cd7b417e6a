//===- Print.cpp - what kernels print -------------------------------------===//
//
// CUDA C++ Programming Guide, "Formatted Output" and "Assertion". Arguments lie one after the other,
// each aligned to its size, integers of 4 or 8 bytes and doubles. Lanes print in order, CTAs too:
// what a CTA prints is kept until the launch is over.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Print.h"
#include "runtime/emulator/observe/Observer.h"

#include <cstdio>
#include <cstring>

using namespace planemu;

namespace {

/// One lane that reads memory by generic addresses.
class LaneReader {
public:
  LaneReader(Warp &warp, const Inst &inst, unsigned lane) : warp(warp), inst(inst), lane(lane) {}

  /// Host address of `bytes` bytes, or null after reporting a fault.
  const char *find(std::uint64_t address, std::uint32_t bytes) {
    std::uint64_t window = address & WindowMask, offset = address - window;
    RegionRef region;
    if (window == LocalWindow) {
      if (offset < warp.localBytes && bytes <= warp.localBytes - offset)
        return warp.local + std::uint64_t(lane) * warp.localBytes + offset;
    } else if (findRegion(warp, address, region) && address - region.low < region.size &&
               bytes <= region.size - (address - region.low)) {
      return reinterpret_cast<const char *>(address + region.delta);
    }
    reportFault(warp, inst.line, FaultKind::OutOfBounds, lane, address, bytes, "printf or assert");
    return nullptr;
  }

  template <class T> T read(std::uint64_t address) {
    T value{};
    if (const char *from = find(address, sizeof(T)))
      std::memcpy(&value, from, sizeof(T));
    return value;
  }
  std::string text(std::uint64_t address) {
    std::string result;
    while (const char *next = find(address++, 1)) {
      if (!*next)
        break;
      result += *next;
    }
    return result;
  }
  /// Of the .param variable whose offset operand `n` holds.
  template <class T> T argument(unsigned n) {
    std::uint64_t offset;
    std::memcpy(&offset, warp.file + operandsOf(inst)[n] + 8 * lane, 8);
    return read<T>(LocalWindow + offset);
  }

private:
  Warp &warp;
  const Inst &inst;
  unsigned lane;
};

/// A conversion of the format: everything from '%' on.
struct Conversion {
  std::string flags; // and width and precision
  bool wide = false; // ll, l, j, z or t: 8 bytes
  char letter = 0;   // 0: there is no such conversion
};

} // namespace

/// Formats with one argument; `spec` is one conversion, checked by the caller.
template <class... T>
static void appendFormatted(std::string &to, const std::string &spec, T... value) {
  int length = std::snprintf(nullptr, 0, spec.c_str(), value...);
  if (length < 0)
    return;
  std::size_t begin = to.size();
  to.resize(begin + static_cast<std::size_t>(length) + 1);
  std::snprintf(to.data() + begin, static_cast<std::size_t>(length) + 1, spec.c_str(), value...);
  to.pop_back();
}

/// Reads a conversion that starts after the '%' at `at`.
template <class Next>
static Conversion readConversion(const std::string &format, std::size_t &at, Next nextInt) {
  Conversion conversion;
  bool readable = true;
  auto number = [&] {
    std::string digits;
    if (at < format.size() && format[at] == '*') {
      ++at;
      digits = std::to_string(nextInt());
    } else {
      while (at < format.size() && format[at] >= '0' && format[at] <= '9')
        digits += format[at++];
    }
    readable &= digits.size() <= 5; // or it is wider than any line
    if (digits.starts_with('-') && conversion.flags.ends_with('.'))
      conversion.flags.pop_back(); // as if there were no precision
    else
      conversion.flags += digits;
  };
  while (at < format.size() && std::strchr("-+ #0", format[at]))
    conversion.flags += format[at++];
  number();
  if (at < format.size() && format[at] == '.') {
    conversion.flags += format[at++];
    number();
  }
  while (at < format.size() && std::strchr("hljztL", format[at]))
    conversion.wide |= format[at++] != 'h';
  if (at < format.size() && std::strchr("cdiouxXpeEfFgGaAs", format[at])) {
    char letter = format[at++];
    conversion.letter = readable ? letter : '\0';
  }
  return conversion;
}

/// What printf(format, arguments) of one lane prints; counts its arguments.
static std::string format(LaneReader &reader, const std::string &text, std::uint64_t arguments,
                          std::uint32_t &count) {
  std::string out;
  auto next = [&]<class T>(T) {
    arguments = (arguments + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value = reader.read<T>(arguments);
    arguments += sizeof(T);
    ++count;
    return value;
  };
  for (std::size_t at = 0; at < text.size();) {
    char c = text[at++];
    if (c != '%') {
      out += c;
      continue;
    }
    if (at < text.size() && text[at] == '%') {
      out += text[at++];
      continue;
    }
    std::size_t begin = at;
    Conversion conversion = readConversion(text, at, [&] { return next(int()); });
    std::string spec = "%" + conversion.flags;
    switch (conversion.letter) {
    case 0:
      out += '%' + text.substr(begin, at - begin);
      break;
    case 'd':
    case 'i':
      appendFormatted(out, spec + "lld",
                      conversion.wide ? next((long long)0) : static_cast<long long>(next(int())));
      break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      appendFormatted(out, spec + "ll" + conversion.letter,
                      conversion.wide ? next(0ull) : static_cast<unsigned long long>(next(0u)));
      break;
    case 'c':
      appendFormatted(out, spec + 'c', next(int()));
      break;
    case 'p':
      appendFormatted(out, spec + 'p', reinterpret_cast<void *>(next(std::uintptr_t())));
      break;
    case 's': {
      std::uint64_t address = next(std::uint64_t());
      appendFormatted(out, spec + 's', address ? reader.text(address).c_str() : "(null)");
      break;
    }
    default:
      appendFormatted(out, spec + conversion.letter, next(double()));
    }
  }
  return out;
}

/// Bytes of one CTA. On a GPU this is the size of the buffer that all share.
static constexpr std::size_t MostPrinted = 1 << 20;

void planemu::printFormatted(Warp &warp, const Inst &inst) {
  std::uint32_t guard, written = 0;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  std::uint64_t hosts[32] = {};
  for (std::uint32_t left = warp.active & (guard ^ inst.guardXor); left && !warp.cta->failed;
       left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    LaneReader reader(warp, inst, lane);
    std::uint32_t count = 0;
    std::string text = reader.text(reader.argument<std::uint64_t>(1));
    text = format(reader, text, reader.argument<std::uint64_t>(2), count);
    if (std::string &output = warp.cta->output; output.size() < MostPrinted) {
      output += text;
      if (output.size() >= MostPrinted)
        output.replace(MostPrinted, output.npos, "\n(a CTA prints no more than 1 MiB)\n");
    }
    std::uint64_t offset;
    std::memcpy(&offset, warp.file + operandsOf(inst)[0] + 8 * lane, 8);
    char *result = warp.local + std::uint64_t(lane) * warp.localBytes + offset;
    std::memcpy(result, &count, 4);
    hosts[lane] = reinterpret_cast<std::uint64_t>(result);
    written |= 1u << lane;
  }
  if (written && warp.observer && warp.observer->seesMemory())
    warp.observer->access(warp, inst, {AccessKind::Store, written, 4, 0, hosts});
}

void planemu::failAssertion(Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  std::uint32_t lanes = warp.active & (guard ^ inst.guardXor);
  if (!lanes || warp.cta->failed)
    return;
  unsigned lane = static_cast<unsigned>(__builtin_ctz(lanes));
  LaneReader reader(warp, inst, lane);
  std::string message = reader.text(reader.argument<std::uint64_t>(0));
  std::string file = reader.text(reader.argument<std::uint64_t>(1));
  std::uint32_t line = reader.argument<std::uint32_t>(2);
  std::string function = reader.text(reader.argument<std::uint64_t>(3));
  if (warp.cta->failed)
    return;
  reportFault(warp, inst.line, FaultKind::Assert, lane);
  Launch &launch = *warp.launch;
  std::lock_guard lock(launch.faultMutex);
  if (launch.fault.linearCta != warp.cta->linear)
    return; // a lower CTA has failed
  auto triple = [](const std::uint32_t *v) {
    return "[" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) +
           "]";
  };
  launch.assertion =
      file + ":" + std::to_string(line) + ": " + function + ": block: " + triple(launch.fault.cta) +
      ", thread: " + triple(launch.fault.thread) + " Assertion `" + message + "` failed.\n";
}
