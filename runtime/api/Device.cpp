//===- Device.cpp - devices, for C ------------------------------------------===//
//
// See planrt.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Api.h"

using namespace planc;
using namespace planrt;
using namespace planrt::api;

static_assert(int(PLANRT_CHECK_MEM) == PLANEMU_CHECK_MEM &&
              int(PLANRT_CHECK_INIT) == PLANEMU_CHECK_INIT &&
              int(PLANRT_CHECK_RACE) == PLANEMU_CHECK_RACE &&
              int(PLANRT_CHECK_SYNC) == PLANEMU_CHECK_SYNC &&
              int(PLANRT_CHECK_READS) == PLANEMU_CHECK_READS);

planrt_status planrt_device_open(const char *name, const planrt_device_options *options,
                                 planrt_device **out, planrt_error **error) {
  return guard(error, [&]() -> Status {
    if (Status status = require({{name, "name"}, {out, "out"}}); !status.ok())
      return status;
    planrt_device_options given;
    if (Status status = readOptions(options, given); !status.ok())
      return status;
    EmulatorSettings settings = {given.threads, given.schedule_seed,
                                 given.target ? given.target : "", given.checks,
                                 given.counters != 0};
    Log log;
    if (given.log)
      log = [call = given.log, user = given.log_user](const std::string &line) {
        call(user, line.c_str());
      };
    return give(Device::open(name, settings, std::move(log)), out);
  });
}

void planrt_device_free(planrt_device *device) { delete device; }

const char *planrt_device_product(const planrt_device *device) {
  return device ? device->impl->product().c_str() : "";
}
uint32_t planrt_device_sm(const planrt_device *device) { return device ? device->impl->sm() : 0; }

size_t planrt_device_finding_count(const planrt_device *device) {
  return device ? device->impl->driver().findingCount() : 0;
}
const char *planrt_device_finding(const planrt_device *device, size_t index) {
  return device ? device->impl->driver().finding(index) : nullptr;
}
const char *planrt_device_counters(const planrt_device *device) {
  return device && device->impl->settings().counters ? device->impl->driver().counters() : nullptr;
}
