//===- Lanes.h - how an instruction's function walks the 32 lanes ---------===//
//
// The files of this folder are compiled once per instruction set of the host (CMakeLists.txt), each
// time in a namespace of its own, PLANEMU_ISA. They use the compilers' vector extension on eight
// lanes at a time, so one source serves all; intrinsics appear where the extension has no word for
// the operation.
//
// An instruction is a lambda on vectors:   d.emit(lanes<[](auto a, auto b) { return a + b; }, u32,
// u32, u32>) or, where vectors do not help, on lanes: d.emit(each<[](u32 a) { return reverse(a); },
// u32, u32>)
//
// Lambdas see all lanes, also those that do not execute; only memory, division and what could trap
// or be slow is done on live lanes alone. Sources of a chunk are read before its destination is
// written, so a destination may be a source of the same width.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_LANES_H
#define PLANEMU_OPS_LANES_H

#include "runtime/emulator/Decoder.h"
#include "runtime/emulator/Machine.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace planemu::PLANEMU_ISA {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

constexpr int Chunk = 8;           // lanes of one vector
constexpr int Chunks = 32 / Chunk; // vectors of one register

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * Chunk)));
};
template <class T> using V = typename VectorOf<T>::type;

using Vu8 = V<u8>;
using Vu16 = V<u16>;
using Vu32 = V<u32>;
using Vu64 = V<u64>;
using Vs16 = V<s16>;
using Vs32 = V<s32>;
using Vs64 = V<s64>;
using Vf32 = V<f32>;
using Vf64 = V<f64>;

template <class To, class From> inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
/// Lane-wise conversion of value.
template <class T, class From> inline V<T> to(From from) {
  return __builtin_convertvector(from, V<T>);
}
template <class T> inline V<T> splat(T value) {
  return V<T>{value, value, value, value, value, value, value, value};
}

template <class T> inline V<T> load(const char *slot, int chunk) {
  return *reinterpret_cast<const V<T> *>(slot + chunk * sizeof(V<T>));
}
template <class T> inline void store(char *slot, int chunk, V<T> value) {
  *reinterpret_cast<V<T> *>(slot + chunk * sizeof(V<T>)) = value;
}

/// Integer type of a size; comparisons of vectors have its signed form.
template <int Bytes> struct IntegerOf;
template <> struct IntegerOf<1> {
  using u = u8;
  using s = s8;
};
template <> struct IntegerOf<2> {
  using u = u16;
  using s = s16;
};
template <> struct IntegerOf<4> {
  using u = u32;
  using s = s32;
};
template <> struct IntegerOf<8> {
  using u = u64;
  using s = s64;
};
template <class T> using Unsigned = typename IntegerOf<sizeof(T)>::u;
template <class T> using Signed = typename IntegerOf<sizeof(T)>::s;

/// Bits 0-7 of `mask` as a vector of all ones or zero.
template <class T> inline V<Signed<T>> expand(u32 mask) {
  using S = Signed<T>;
  if constexpr (sizeof(T) == 2) {
    V<s16> select = {1, 2, 4, 8, 16, 32, 64, 128};
    return (splat<s16>(static_cast<s16>(mask & 0xff)) & select) != 0;
  } else {
    V<S> select = {1, 2, 4, 8, 16, 32, 64, 128};
    return (splat<S>(static_cast<S>(mask)) & select) != 0;
  }
}

/// One bit per lane of a comparison's result.
template <class Compared> inline u32 compress(Compared compared) {
  constexpr int Bytes = sizeof(Compared) / Chunk;
#if defined(__AVX2__)
  if constexpr (Bytes == 4)
    return static_cast<u32>(_mm256_movemask_ps(bits<__m256>(compared)));
  if constexpr (Bytes == 8) {
    struct Halves {
      __m256d low, high;
    } halves = bits<Halves>(compared);
    return static_cast<u32>(_mm256_movemask_pd(halves.low) | _mm256_movemask_pd(halves.high) << 4);
  }
#elif defined(__SSE2__)
  if constexpr (Bytes == 4) {
    struct Halves {
      __m128 low, high;
    } halves = bits<Halves>(compared);
    return static_cast<u32>(_mm_movemask_ps(halves.low) | _mm_movemask_ps(halves.high) << 4);
  }
#endif
#if defined(__SSE2__)
  if constexpr (Bytes == 2)
    return static_cast<u32>(
               _mm_movemask_epi8(_mm_packs_epi16(bits<__m128i>(compared), __m128i{}))) &
           0xff;
#endif
  Vu8 one = {1, 2, 4, 8, 16, 32, 64, 128};
  Vu8 narrow = bits<Vu8>(__builtin_convertvector(compared, V<s8>)) & one;
  return static_cast<u32>(bits<u64>(narrow) * 0x0101010101010101ull >> 56);
}

/// True if no bit is set.
template <class T> inline bool allZero(V<T> v) {
#if defined(__AVX2__)
  if constexpr (sizeof(v) == 64) {
    struct Halves {
      __m256i low, high;
    } halves = bits<Halves>(v);
    __m256i either = _mm256_or_si256(halves.low, halves.high);
    return _mm256_testz_si256(either, either);
  }
  if constexpr (sizeof(v) == 32)
    return _mm256_testz_si256(bits<__m256i>(v), bits<__m256i>(v));
#endif
  return compress(v != 0) == 0;
}

/// In lists of operands: a predicate, of which eight lanes are a byte.
struct Pred {};
template <class T>
constexpr std::size_t ChunkBytes = std::is_same_v<T, Pred> ? 1 : Chunk * sizeof(T);

template <class Mask, class T> inline T choose(Mask mask, T yes, T no) {
  using M = V<Unsigned<std::remove_cvref_t<decltype(yes[0])>>>;
  M m = bits<M>(mask);
  return bits<T>((bits<M>(yes) & m) | (bits<M>(no) & ~m));
}

inline u32 readMask(const Warp &w, u32 offset) {
  u32 mask;
  std::memcpy(&mask, w.file + offset, 4);
  return mask;
}
inline void writeMask(Warp &w, u32 offset, u32 value, u32 lanes) {
  u32 mask = (readMask(w, offset) & ~lanes) | (value & lanes);
  std::memcpy(w.file + offset, &mask, 4);
}
/// The lanes that execute.
inline u32 executing(const Warp &w, const Inst &i) {
  return w.active & (readMask(w, i.guard) ^ i.guardXor);
}

template <class T> inline T *at(Warp &w, u32 offset) {
  return reinterpret_cast<T *>(w.file + offset);
}

/// Writes `value` in the lanes of `mask`; mask bits 0-7 are this chunk's.
template <class T> inline void merge(char *slot, int chunk, u32 mask, V<T> value) {
  if ((mask & 0xff) == 0xff) [[likely]]
    store<T>(slot, chunk, value);
  else
    store<T>(slot, chunk, choose(expand<T>(mask), value, load<T>(slot, chunk)));
}

/// Tells the compiler what holds in groups.
[[gnu::always_inline]] inline void assumeWhole(const Warp &w, const Inst &i) {
  if (executing(w, i) != ~0u)
    __builtin_unreachable();
}

/// F for each warp of a group.
template <Run F> void together(const Group &group, const Inst &i) {
  // A copy, as for all the compiler knows the warps' registers are where `i` is.
  const Inst own = i;
  for (Warp *w : group) {
    assumeWhole(*w, own);
    F(*w, own);
  }
}
/// F as an instruction that is worth a form for groups.
#if defined(__AVX2__)
template <Run F> inline constexpr Exec grouped{F, together<F>};
#else // The call costs little next to the work, and the code would be twice as long.
template <Run F> inline constexpr Exec grouped{F};
#endif

#if defined(PLANEMU_BITCODE)
template <auto Function> inline constexpr auto kept = Function;
#endif
template <class Code, class... Operands>
inline constexpr LaneCode laneCode = {
    &typeid(Code),
    {std::is_same_v<Operands, Pred> ? 0 : sizeof(Operands)...},
#if defined(PLANEMU_BITCODE)
    &kept<Code::run>,
#endif
};

/// `exec`, which does in every chunk what `Code::run(imm, where each operand's eight lanes are...)`
/// does. A JIT compiler has that function as bitcode; it has none for the hosts without AVX2.
template <class Code, class... Operands> constexpr Exec onLanes(Exec exec) {
#if defined(__AVX2__)
  return exec.with(laneCode<Code, Operands...>);
#else
  return exec;
#endif
}
/// One of several sources of a Code::run.
template <class> using SourceOf = const char *;

// Slots are looked up before the loop: for all the compiler knows, a store to one may change the
// Warp.
template <auto F, class D, class... S, std::size_t... N>
[[gnu::always_inline]] inline void lanesOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  u32 mask = executing(w, i);
  char *const d = w.file + i.s[0];
  const char *const s[] = {w.file + i.s[1 + N]...};
  if (mask == ~0u) [[likely]] {
    for (int c = 0; c < Chunks; ++c) {
      V<D> value = F(load<S>(s[N], c)...);
      store<D>(d, c, value);
    }
  } else if (mask) {
    for (int c = 0; c < Chunks; ++c) {
      V<D> value = F(load<S>(s[N], c)...);
      merge<D>(d, c, mask >> (c * Chunk), value);
    }
  }
}

/// Destination 0 = F(sources 1, 2, ...), by vectors.
template <auto F, class D, class... S>
[[gnu::always_inline]] inline void runLanes(Warp &w, const Inst &i) {
  lanesOf<F, D, S...>(w, i, std::index_sequence_for<S...>());
}
template <auto F, class D, class... S> struct LanesCode {
  static void run(s64, char *d, SourceOf<S>... s) { store<D>(d, 0, F(load<S>(s, 0)...)); }
};
template <auto F, class D, class... S>
inline constexpr Exec lanes =
    onLanes<LanesCode<F, D, S...>, D, S...>(grouped<runLanes<F, D, S...>>);

template <class Code, class D, class... S, std::size_t... N>
[[gnu::always_inline]] inline void chunksOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  const u32 mask = executing(w, i);
  const s64 imm = i.imm;
  char *const d = w.file + i.s[0];
  const char *const s[] = {w.file + i.s[1 + N]...};
  for (int c = 0; c < Chunks; ++c) {
    V<D> value;
    Code::run(imm, reinterpret_cast<char *>(&value), s[N] + c * ChunkBytes<S>...);
    merge<D>(d, c, mask >> (c * Chunk), value);
  }
}
template <class Code, class D, class... S>
[[gnu::always_inline]] inline void runChunks(Warp &w, const Inst &i) {
  chunksOf<Code, D, S...>(w, i, std::index_sequence_for<S...>());
}
/// Destination 0, which is no predicate, by Code::run, for what depends on imm or on predicates.
template <class Code, class D, class... S>
inline constexpr Exec chunks = onLanes<Code, D, S...>(grouped<runChunks<Code, D, S...>>);

template <auto F, class D, class... S, std::size_t... N>
inline void eachOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  u32 mask = executing(w, i);
  D *const d = at<D>(w, i.s[0]);
  const char *const s[] = {w.file + i.s[1 + N]...};
  auto run = [&](int lane) { d[lane] = F(reinterpret_cast<const S *>(s[N])[lane]...); };
  if (mask == ~0u) {
    for (int lane = 0; lane < 32; ++lane)
      run(lane);
    return;
  }
  for (u32 left = mask; left; left &= left - 1)
    run(__builtin_ctz(left));
}

/// Destination 0 = F(sources 1, 2, ...), lane by lane.
template <auto F, class D, class... S> void each(Warp &w, const Inst &i) {
  eachOf<F, D, S...>(w, i, std::index_sequence_for<S...>());
}

/// Predicate 0 = F(sources 1, 2, ...), by vectors; F compares.
template <auto F, class... S, std::size_t... N>
[[gnu::always_inline]] inline void testOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  u32 mask = executing(w, i), result = 0;
  for (int c = 0; c < Chunks; ++c)
    result |= compress(F(load<S>(w.file + i.s[1 + N], c)...)) << (c * Chunk);
  writeMask(w, i.s[0], result, mask);
}
template <auto F, class... S> void runTest(Warp &w, const Inst &i) {
  testOf<F, S...>(w, i, std::index_sequence_for<S...>());
}
template <auto F, class... S> struct TestCode {
  static void run(s64, char *p, SourceOf<S>... s) {
    *p = static_cast<char>(compress(F(load<S>(s, 0)...)));
  }
};
template <auto F, class... S>
inline constexpr Exec test = onLanes<TestCode<F, S...>, Pred, S...>(grouped<runTest<F, S...>>);

/// Predicate 0 = F(imm, predicates 1, 2, ...), of which F sees 32 lanes or eight.
template <auto F, class... S, std::size_t... N>
[[gnu::always_inline]] inline void masksOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  writeMask(w, i.s[0], F(i.imm, readMask(w, i.s[1 + N])...), executing(w, i));
}
template <auto F, class... S> void runMasks(Warp &w, const Inst &i) {
  masksOf<F, S...>(w, i, std::index_sequence_for<S...>());
}
template <auto F, class... S> struct MasksCode {
  static void run(s64 imm, char *p, SourceOf<S>... s) {
    *p = static_cast<char>(F(imm, static_cast<u32>(static_cast<u8>(*s))...));
  }
};
template <auto F, class... S>
inline constexpr Exec masks = onLanes<MasksCode<F, S...>, Pred, S...>(runMasks<F, S...>);

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_LANES_H
