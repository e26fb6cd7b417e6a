//===- Check.h - plain unit tests ------------------------------------------===//
//
// A unit test is an executable of TEST blocks; each CHECK that fails prints its place and what it
// saw, and the executable then exits with 1. lit runs it through a line in a .test file.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_TEST_UNIT_CHECK_H
#define PLANC_TEST_UNIT_CHECK_H

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace check {

struct Test {
  const char *name;
  void (*run)();
};

inline std::vector<Test> tests;
inline int failures = 0;

struct Register {
  Register(const char *name, void (*run)()) { tests.push_back({name, run}); }
};

template <class T> std::string show(const T &value) {
  if constexpr (requires(std::ostringstream &out) { out << value; }) {
    std::ostringstream out;
    out << value;
    return out.str();
  } else {
    return "(a value)";
  }
}

inline void fail(const char *file, int line, const std::string &what) {
  ++failures;
  std::printf("%s:%d: check failed: %s\n", file, line, what.c_str());
}

template <class A, class B>
void equal(const char *file, int line, const char *text, const A &a, const B &b) {
  if (!(a == b))
    fail(file, line, std::string(text) + "\n  left:  " + show(a) + "\n  right: " + show(b));
}

inline void contains(const char *file, int line, std::string_view text, std::string_view part) {
  if (text.find(part) == std::string_view::npos)
    fail(file, line,
         "\"" + std::string(text) + "\" does not contain \"" + std::string(part) + "\"");
}

/// A folder of this process, removed at exit by `main`.
inline const std::filesystem::path &folder() {
  static const std::filesystem::path path = [] {
    auto made = std::filesystem::temp_directory_path() / ("planc-test." + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  return path;
}

/// Runs the tests whose name contains the first argument, or all.
inline int main(int argc, char **argv) {
  int run = 0;
  for (const Test &test : tests) {
    if (argc > 1 && !std::strstr(test.name, argv[1]))
      continue;
    int before = failures;
    test.run();
    ++run;
    if (failures != before)
      std::printf("FAILED %s\n", test.name);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder(), ignored);
  std::printf("%d tests, %d failed checks\n", run, failures);
  return failures || !run ? 1 : 0;
}

} // namespace check

#define TEST(Name)                                                                                 \
  static void test_##Name();                                                                       \
  static check::Register register_##Name(#Name, test_##Name);                                      \
  static void test_##Name()

#define CHECK(...)                                                                                 \
  do {                                                                                             \
    if (!(__VA_ARGS__))                                                                            \
      check::fail(__FILE__, __LINE__, #__VA_ARGS__);                                               \
  } while (false)
#define CHECK_EQ(A, B) check::equal(__FILE__, __LINE__, #A " == " #B, A, B)
#define CHECK_CONTAINS(Text, Part) check::contains(__FILE__, __LINE__, Text, Part)

/// Leaves the test when the condition fails, for what follows would make no sense.
#define REQUIRE(...)                                                                               \
  do {                                                                                             \
    if (!(__VA_ARGS__))                                                                            \
      return check::fail(__FILE__, __LINE__, #__VA_ARGS__);                                        \
  } while (false)

#define CHECK_MAIN                                                                                 \
  int main(int argc, char **argv) { return check::main(argc, argv); }

#endif // PLANC_TEST_UNIT_CHECK_H
