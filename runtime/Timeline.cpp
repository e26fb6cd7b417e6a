//===- Timeline.cpp - when the entries of a launch list ran -----------------===//
//
// See Timeline.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/Timeline.h"

using namespace planc;
using namespace planrt;
using namespace cudaabi;

static constexpr const char *failure = "cannot time the step";

Result<std::unique_ptr<Timeline>> Timeline::create(DevicePtr device, size_t entries) {
  std::unique_ptr<Timeline> timeline(new Timeline(std::move(device), entries));
  const Device &owner = *timeline->device;
  std::vector<CUevent *> wanted = {&timeline->runBegin};
  for (Events &pair : timeline->events)
    wanted.insert(wanted.end(), {&pair.begin, &pair.end});
  for (CUevent *event : wanted)
    if (Status status = owner.check(owner.driver()->cuEventCreate(event, 0), failure); !status.ok())
      return status.takeError();
  timeline->recorded.reserve(entries);
  return timeline;
}

Timeline::~Timeline() {
  const Driver &api = device->driver();
  for (const Events &pair : events)
    for (CUevent event : {pair.begin, pair.end})
      if (event)
        api->cuEventDestroy_v2(event);
  if (runBegin)
    api->cuEventDestroy_v2(runBegin);
}

double Timeline::now() const {
  return std::chrono::duration<double, std::micro>(Clock::now() - origin).count();
}

void Timeline::beginStep() {
  origin = Clock::now();
  std::fill(slices.begin(), slices.end(), Slice());
  recorded.clear();
}

void Timeline::beginHost(size_t entry) { slices[entry] = {true, false, now(), 0}; }
void Timeline::endHost(size_t entry) { slices[entry].duration = now() - slices[entry].start; }

Status Timeline::record(CUevent event, CUstream stream) {
  return device->check(device->driver()->cuEventRecord(event, stream), failure);
}

Status Timeline::beginRun(CUstream stream) {
  recorded.clear();
  runStart = now();
  return record(runBegin, stream);
}

Status Timeline::beginDevice(size_t entry, CUstream stream) {
  recorded.push_back(entry);
  return record(events[entry].begin, stream);
}

Status Timeline::endDevice(size_t entry, CUstream stream) {
  return record(events[entry].end, stream);
}

Status Timeline::elapsed(CUevent event, double &microseconds) {
  float milliseconds = 0;
  CUresult result = device->driver()->cuEventElapsedTime_v2(&milliseconds, runBegin, event);
  microseconds = 1000.0 * double(milliseconds);
  return device->check(result, failure);
}

Status Timeline::endRun() {
  for (size_t entry : recorded) {
    double begin = 0, end = 0;
    if (Status status = elapsed(events[entry].begin, begin); !status.ok())
      return status;
    if (Status status = elapsed(events[entry].end, end); !status.ok())
      return status;
    slices[entry] = {true, true, runStart + begin, end - begin};
  }
  return {};
}
