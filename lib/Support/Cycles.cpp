//===- Cycles.cpp - the cycles of a directed graph ------------------------===//
//
// Tarjan's algorithm with a stack of its own.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Cycles.h"

#include <algorithm>
#include <utility>

std::vector<std::vector<size_t>> planc::findCycles(const std::vector<std::vector<size_t>> &next) {
  constexpr size_t unseen = size_t(-1);
  std::vector<size_t> index(next.size(), unseen), low(next.size());
  std::vector<bool> open(next.size());
  std::vector<size_t> path;                      // vertices whose component is not known yet
  std::vector<std::pair<size_t, size_t>> visits; // vertex, successor to look at next
  std::vector<std::vector<size_t>> cycles;
  size_t counter = 0;

  auto enter = [&](size_t vertex) {
    index[vertex] = low[vertex] = counter++;
    path.push_back(vertex);
    open[vertex] = true;
    visits.emplace_back(vertex, 0);
  };
  auto leave = [&](size_t root) {
    std::vector<size_t> members;
    do {
      members.push_back(path.back());
      open[path.back()] = false;
      path.pop_back();
    } while (members.back() != root);
    bool self = std::find(next[root].begin(), next[root].end(), root) != next[root].end();
    if (members.size() == 1 && !self)
      return;
    std::sort(members.begin(), members.end());
    cycles.push_back(std::move(members));
  };

  for (size_t start = 0; start < next.size(); ++start) {
    if (index[start] == unseen)
      enter(start);
    while (!visits.empty()) {
      size_t vertex = visits.back().first;
      if (visits.back().second < next[vertex].size()) {
        size_t to = next[vertex][visits.back().second++];
        if (index[to] == unseen)
          enter(to);
        else if (open[to])
          low[vertex] = std::min(low[vertex], index[to]);
        continue;
      }
      visits.pop_back();
      if (!visits.empty())
        low[visits.back().first] = std::min(low[visits.back().first], low[vertex]);
      if (low[vertex] == index[vertex])
        leave(vertex);
    }
  }
  return cycles;
}
