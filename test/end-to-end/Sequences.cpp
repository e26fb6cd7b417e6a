//===- Sequences.cpp - a model's sequences, alone and together ----------------===//
//
//   planrt-sequences BUNDLE WEIGHTS LOGITS TOKEN...
//
// Through the C ABI (its C++ wrapper) with a bundle that has a program of one row and one of two:
// writes the tokens' logits, raw float32, of the one-row program to LOGITS; then checks that
// sequences which share steps, fork, are cancelled or change programs get the bytes that they get
// alone. Exit code 1 and a line for what differs.
//
//===----------------------------------------------------------------------===//
#include <planrt/planrt.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>

using Logits = std::vector<float>;

static size_t vocab;
static int failures;

/// Bit for bit: NaN equals itself.
static void same(const Logits &a, const Logits &b, const char *what, size_t step) {
  if (std::memcmp(a.data(), b.data(), vocab * sizeof(float)) == 0)
    return;
  std::printf("%s: other logits at step %zu\n", what, step);
  ++failures;
}

/// The logits after every token of a sequence that runs by itself.
static std::vector<Logits> alone(planrt::Session &session, planrt::Step &step,
                                 const std::vector<int32_t> &tokens) {
  std::vector<Logits> result;
  uint32_t sequence = session.create();
  for (int32_t token : tokens) {
    step.run({sequence}, {token});
    result.push_back(step.logits(0, vocab));
  }
  session.free(sequence);
  return result;
}

/// Two sequences of which the second starts `delay` steps late, then each goes on alone.
static void together(planrt::Session &session, planrt::Step &step,
                     const std::vector<int32_t> tokens[2], const std::vector<Logits> expected[2],
                     size_t delay, const char *what) {
  uint32_t sequences[2] = {session.create(), session.create()};
  size_t at[2] = {0, 0};
  for (size_t i = 0; at[0] < tokens[0].size() || at[1] < tokens[1].size(); ++i) {
    std::vector<uint32_t> rows;
    std::vector<int32_t> given;
    std::vector<size_t> whose;
    for (size_t s : {i % 2, 1 - i % 2}) // rows change places
      if (at[s] < tokens[s].size() && (s == 0 || i >= delay)) {
        rows.push_back(sequences[s]);
        given.push_back(tokens[s][at[s]]);
        whose.push_back(s);
      }
    step.begin(rows, given);
    if (i % 5 == 3) { // given up once, then run again
      step.cancel();
      try {
        step.wait();
        std::printf("%s: a cancelled step came to its end\n", what), ++failures;
      } catch (const planrt::Error &) {
      }
      step.begin(rows, given);
    }
    step.wait();
    for (uint32_t row = 0; row < rows.size(); ++row) {
      size_t s = whose[row];
      same(step.logits(row, vocab), expected[s][at[s]], what, at[s]);
      ++at[s];
    }
  }
  for (uint32_t sequence : sequences)
    session.free(sequence);
}

/// A sequence forks after every token, and the forks go another way before it goes on.
static void forked(planrt::Session &session, planrt::Step &step, const std::vector<int32_t> &tokens,
                   const std::vector<Logits> &expected) {
  uint32_t sequence = session.create();
  for (size_t i = 0; i < tokens.size(); ++i) {
    uint32_t other = session.fork(sequence);
    step.run({other}, {tokens[i] / 2});
    step.run({other, sequence}, {1, tokens[i]});
    same(step.logits(1, vocab), expected[i], "beside a fork", i);
    session.free(other);
  }
  session.free(sequence);
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  planrt::Bundle bundle(argv[1]);
  planrt::Device device("emulator");
  planrt::Weights weights(bundle, device, argv[2]);
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = 2;
  planrt::Session session(weights, &options);
  std::vector<planrt_program_info> programs = bundle.programs();
  vocab = size_t(programs[0].vocab);
  const char *oneRow = programs[bundle.find("decode", 1)].name;
  const char *twoRows = programs[bundle.find("", 2)].name;

  std::vector<int32_t> tokens[2];
  for (int i = 4; i < argc; ++i) {
    tokens[0].push_back(std::atoi(argv[i]));
    tokens[1].push_back((tokens[0].back() * 7 + 3) % int32_t(vocab));
  }
  planrt::Step single(session, oneRow);
  std::ofstream file(argv[3], std::ios::binary);
  for (const Logits &row : alone(session, single, tokens[0]))
    file.write(reinterpret_cast<const char *>(row.data()), long(vocab * sizeof(float)));

  planrt::Step step(session, twoRows);
  std::vector<Logits> expected[2];
  for (int s : {0, 1})
    expected[s] = alone(session, step, tokens[s]);
  for (size_t delay : {0, 1, 5})
    together(session, step, tokens, expected, delay, "together");
  forked(session, step, tokens[0], expected[0]);

  planrt_step_options ways;
  planrt_step_options_init(&ways);
  ways.debug = ways.timeline = 1;
  planrt::Step debug(session, twoRows, &ways);
  together(session, debug, tokens, expected, 3, "with debug and timeline");

  // What one program has begun another goes on with; from there on the bits are its own.
  uint32_t sequence = session.create();
  for (size_t i = 0; i < tokens[0].size(); ++i)
    (i % 2 ? single : step).run({sequence}, {tokens[0][i]});
  if (session.length(sequence) != int64_t(tokens[0].size()))
    std::printf("programs do not share the sequence\n"), ++failures;
  return failures != 0;
}
