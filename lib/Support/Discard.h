//===- Discard.h - freeing JSON without asking for memory ------------------===//
//
// Json's destructor allocates to free what is nested, and ends the process if it cannot: no way to
// go for a library inside a program that wants to survive a lack of memory. Emptied from the bottom
// up, a value has nothing left to ask for.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_DISCARD_H
#define PLANC_LIB_SUPPORT_DISCARD_H

#include "lib/Support/Json.h"

namespace planc {

/// Empties `json`.
void discard(Json &json) noexcept;

/// Does so at the end of its scope.
class Discard {
public:
  explicit Discard(Json &json) : json(json) {}
  Discard(const Discard &) = delete;
  ~Discard() { discard(json); }

private:
  Json &json;
};

} // namespace planc

#endif // PLANC_LIB_SUPPORT_DISCARD_H
