//===- Handles.h - the objects that programs name by handles --------------===//
//
// A handle is a number that is never given out again, so that one of a destroyed object, or of
// another kind, is found to be wrong instead of naming whatever came later. Iteration is in order
// of creation.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_HANDLES_H
#define PLANEMU_DRIVER_HANDLES_H

#include <cstdint>
#include <map>
#include <memory>

namespace planemu {

/// Above the special streams 1 and 2, and below any address of a process.
std::uintptr_t newHandle();

template <class Object, class Handle> class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    object->handle = newHandle();
    Handle handle = handleOf(*object);
    live[object->handle] = std::move(object);
    return handle;
  }
  /// Null if no object has this handle.
  std::shared_ptr<Object> find(Handle handle) const {
    auto found = live.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == live.end() ? nullptr : found->second;
  }
  /// Like find; the handle is no longer valid.
  std::shared_ptr<Object> remove(Handle handle) {
    auto found = live.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == live.end())
      return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    live.erase(found);
    return object;
  }
  template <class Predicate> void removeIf(Predicate predicate) {
    for (auto at = live.begin(); at != live.end();)
      at = predicate(*at->second) ? live.erase(at) : std::next(at);
  }
  static Handle handleOf(const Object &object) { return reinterpret_cast<Handle>(object.handle); }

  auto begin() const { return live.begin(); }
  auto end() const { return live.end(); }

private:
  std::map<std::uintptr_t, std::shared_ptr<Object>> live;
};

} // namespace planemu

#endif // PLANEMU_DRIVER_HANDLES_H
