//===- Resident.h - a CTA with its warps ----------------------------------===//
//
// Everything that is a CTA's own: register files, shared and local memory, barriers. All of it is
// reset when the CTA starts, so that results do not depend on who runs it or on what ran before.
// The buffers are kept from CTA to CTA and from launch to launch.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_RESIDENT_H
#define PLANEMU_RESIDENT_H

#include "runtime/emulator/Machine.h"

namespace planemu {

class Resident {
public:
  Resident();
  ~Resident();
  Resident(const Resident &) = delete;

  /// Makes room for CTAs of `launch`. Throws std::bad_alloc.
  void prepare(Launch &launch);
  void start(std::uint64_t linear);

  enum class Outcome : std::uint8_t {
    Ended,   // or failed, or no longer needed
    Waiting, // all its warps wait for something outside
  };
  /// Runs until one of these is true. A CTA also counts as waiting when its warps have yielded
  /// `patience` times in a row, which a warp that counts while it waits needs.
  Outcome run(unsigned patience, bool traced = false);
  /// After many runs in which it only waited: true if nothing but what others write can ever change
  /// what it does, and it has seen nothing new. Two short runs in which every register has the same
  /// value after every instruction show that: all its loads give the same again, so it also stores
  /// the same again.
  bool goesInCircles();
  void reportCircles();

  /// True if the last run did more than find out that the CTA still waits.
  bool progressed() const { return progress; }
  std::uint64_t linear() const { return cta.linear; }
  /// The CTA has ended: what it printed goes to the launch.
  void handOver();
  /// The launch is over: what was observed is handed over.
  void finish();
  /// Warp instructions executed since start.
  std::uint64_t executed() const;

private:
  struct BarrierState {
    std::uint32_t arrived = 0, expected = 0; // threads; expected 0: all of the CTA
    std::uint32_t count = 0;                 // of bar.red's predicate
    bool all = true, any = false;
  };

  void fillConstant(const Constant &constant, Warp &warp);
  void orderWarps();
  void arrive(Warp &warp);
  void completeBarrier(std::uint32_t id);
  void setSlice(Warp &warp);
  void runGroups();
  bool mayJoin(const Warp &warp) const;
  bool hasNotChanged(Warp &warp) const;
  const BarrierSpec &specOf(const Fragment &parked) const;

  Launch *launch = nullptr;
  Cta cta;
  std::vector<Warp> warps;
  std::unique_ptr<Observer> observer;
  std::vector<std::uint32_t> order; // in which warps run
  std::vector<RegionRef> regions;
  std::unique_ptr<char[], void (*)(void *)> files{nullptr, nullptr};
  std::size_t filesBytes = 0;
  std::vector<char> shared, local;
  std::uint32_t liveWarps = 0;
  BarrierState barriers[16];
  std::uint64_t random = 0; // as Warp::random
  bool progress = false, circles = false;
};

} // namespace planemu

#endif // PLANEMU_RESIDENT_H
