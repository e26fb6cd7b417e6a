//===- batch.cpp - continuous batching in C++ ------------------------------===//
//
//   batch BUNDLE WEIGHTS TOKEN,TOKEN,...[;TOKEN,...] COUNT [DEVICE]
//
// Every prompt is a request for COUNT tokens. Up to as many requests as the program has rows take
// part in a step, each at its own position; who is done leaves and the next one takes the row. A
// request that begins with just the tokens that another has by now is forked from it instead of
// computing them again. A request's tokens do not depend on the company it had.
//
//===----------------------------------------------------------------------===//
#include <planrt/planrt.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace {

struct Request {
  size_t number = 0;
  std::vector<int32_t> tokens; // the prompt, then what follows
  size_t prompt = 0;           // of them
  size_t fed = 0;              // of them
  bool started = false;
  uint32_t sequence = 0;
};

/// One program on the requests of a queue.
class Batch {
public:
  Batch(planrt::Session &session, planrt::Step &step, size_t rows, size_t count)
      : session(session), step(step), rows(rows), count(count) {}

  void run(std::vector<Request> requests) {
    waiting = std::move(requests);
    while (!waiting.empty() || !running.empty()) {
      admit();
      beginStep();
      // The device works; meanwhile the host passes on what is done.
      for (const Request &request : std::exchange(done, {}))
        print(request);
      endStep();
    }
    for (const Request &request : done)
      print(request);
  }

private:
  void admit() {
    for (Request &request : waiting)
      for (const Request &other : running)
        shareBeginning(request, other);
    while (running.size() < rows && !waiting.empty()) {
      Request &request = waiting.front();
      if (!request.started)
        request.sequence = session.create();
      request.started = true;
      running.push_back(std::move(request));
      waiting.erase(waiting.begin());
    }
  }

  /// `request` goes on from where `other` is, if that is further on its own way than it has come.
  /// One token has to be left, since only a step gives the next one.
  void shareBeginning(Request &request, const Request &other) {
    if (other.fed <= request.fed || other.fed >= request.prompt ||
        !std::equal(other.tokens.begin(), other.tokens.begin() + long(other.fed),
                    request.tokens.begin()))
      return;
    if (request.started)
      session.free(request.sequence);
    request.started = true;
    request.sequence = session.fork(other.sequence);
    request.fed = other.fed;
  }

  void beginStep() {
    std::vector<uint32_t> sequences;
    std::vector<int32_t> tokens;
    for (const Request &request : running) {
      sequences.push_back(request.sequence);
      tokens.push_back(request.tokens[request.fed]);
    }
    step.begin(sequences, tokens);
  }

  void endStep() {
    std::vector<int32_t> next = step.wait();
    for (size_t i = 0; i < running.size(); ++i)
      if (Request &request = running[i]; ++request.fed == request.tokens.size())
        request.tokens.push_back(next[i]);
    auto isDone = [&](const Request &request) {
      return request.tokens.size() == request.prompt + count;
    };
    for (const Request &request : running)
      if (isDone(request)) {
        session.free(request.sequence);
        done.push_back(request);
      }
    running.erase(std::remove_if(running.begin(), running.end(), isDone), running.end());
  }

  static void print(const Request &request) {
    std::printf("%zu: ", request.number);
    for (size_t i = request.prompt; i < request.tokens.size(); ++i)
      std::printf(i + 1 < request.tokens.size() ? "%d," : "%d\n", request.tokens[i]);
  }

  planrt::Session &session;
  planrt::Step &step;
  size_t rows, count;
  std::vector<Request> waiting, running, done;
};

template <class T> T number(const char *&text, const char *end) {
  T value = 0;
  auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc())
    throw std::invalid_argument("a number is expected at \"" + std::string(text, end) + "\"");
  text = stop;
  return value;
}

/// "374,2,374;5,17"
std::vector<Request> parseRequests(const char *text) {
  const char *end = text + std::strlen(text);
  std::vector<Request> requests(1);
  for (;; ++text) {
    requests.back().tokens.push_back(number<int32_t>(text, end));
    if (text == end)
      break;
    if (*text == ';')
      requests.emplace_back();
    else if (*text != ',')
      throw std::invalid_argument("a , or ; is expected at \"" + std::string(text, end) + "\"");
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].number = i;
    requests[i].prompt = requests[i].tokens.size();
  }
  return requests;
}

/// The program whose rows one step of all requests would fill best.
planrt_program_info chooseProgram(const planrt::Bundle &bundle, size_t requests) {
  std::vector<planrt_program_info> programs = bundle.programs();
  uint32_t most = 1;
  for (const planrt_program_info &program : programs)
    if (std::string(program.mode) == "multi_seq")
      most = std::max(most, program.rows);
  return programs[bundle.find("", std::min(most, uint32_t(requests)))];
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: batch BUNDLE WEIGHTS TOKEN,...[;TOKEN,...] COUNT [DEVICE]\n");
    return 2;
  }
  try {
    std::vector<Request> requests = parseRequests(argv[3]);
    const char *text = argv[4], *end = text + std::strlen(text);
    size_t count = number<size_t>(text, end);
    if (text != end || count == 0)
      throw std::invalid_argument("COUNT is a number above 0");
    planrt::Bundle bundle(argv[1]);
    planrt::Device device(argc == 6 ? argv[5] : "emulator");
    planrt::Weights weights(bundle, device, argv[2]);
    planrt_session_options options;
    planrt_session_options_init(&options);
    options.sequences = uint32_t(requests.size());
    planrt::Session session(weights, &options);
    planrt_program_info program = chooseProgram(bundle, requests.size());
    planrt::Step step(session, program.name);
    Batch(session, step, program.rows, count).run(std::move(requests));
  } catch (const planrt::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
