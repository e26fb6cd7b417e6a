//===- RaceHistory.cpp - accesses and synchronisation of one launch -------===//

#include "runtime/emulator/observe/RaceHistory.h"

#include <algorithm>

using namespace planemu;

std::shared_ptr<const Clocks> planemu::join(const std::shared_ptr<const Clocks> &a,
                                            const std::shared_ptr<const Clocks> &b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  auto joined = std::make_shared<Clocks>(*a);
  for (std::size_t warp = 0; warp < joined->size(); ++warp)
    (*joined)[warp] = std::max((*joined)[warp], (*b)[warp]);
  return joined;
}

KnowledgePtr planemu::join(const KnowledgePtr &a, const KnowledgePtr &b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  auto joined = std::make_shared<Knowledge>(*a);
  for (const auto &[cta, clocks] : b->of) {
    std::shared_ptr<const Clocks> &mine = joined->of[cta];
    mine = join(mine, clocks);
  }
  return joined;
}
