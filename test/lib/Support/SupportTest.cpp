//===- SupportTest.cpp - JSON, files, safetensors, npy --------------------===//
//
// Every refusal of the readers is provoked once, by an input that differs from a good one in the
// one thing that is wrong.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Hash.h"
#include "lib/Support/Json.h"
#include "lib/Support/Npy.h"
#include "lib/Support/Safetensors.h"
#include "test/unit/Check.h"

#include <algorithm>
#include <fstream>

using namespace planc;

static std::string path(const char *name) { return (check::folder() / name).string(); }

static std::string write(const char *name, std::string_view content) {
  std::ofstream(path(name), std::ios::binary) << content;
  return path(name);
}

TEST(json_refuses) {
  auto message = [](std::string_view text) {
    Result<Json> json = parseJson(text, 4);
    return json.ok() ? std::string("accepted") : json.error().message;
  };
  CHECK_EQ(message("{\"a\": [1, -2, 0.5, null, true, \"x\"]}"), "accepted");
  CHECK_EQ(message("{\"a\":1,\"b\":{\"a\":1,\"a\":2}}"), "key \"a\" occurs twice");
  CHECK_EQ(message("[[[[[]]]]]"), "nested deeper than 4 levels");
  CHECK_EQ(message(std::string(100000, '[')), "nested deeper than 4 levels");
  CHECK_EQ(message(std::string_view("{}\0x", 4)), "not JSON at byte 2: a NUL byte");
  CHECK_EQ(message("{} {}"), "not JSON at byte 3");
  CHECK_CONTAINS(message("{\"a\":"), "not JSON at byte 5");
  CHECK_CONTAINS(message(""), "not JSON");
  CHECK_CONTAINS(message("[1e999]"), "not JSON");
  CHECK_CONTAINS(message("[\"\xff\"]"), "not JSON");
}

TEST(json_keeps_the_order_of_keys) {
  CHECK_EQ(parseJson("{\"z\":1,\"a\":{\"y\":[{}],\"b\":2}}")->dump(),
           "{\"z\":1,\"a\":{\"y\":[{}],\"b\":2}}");
}

TEST(output_appears_only_when_committed) {
  std::string target = write("out", "before");
  {
    Result<OutputFile> file = OutputFile::create(target);
    REQUIRE(file.ok());
    CHECK(file->write(asBytes("half")).ok());
  }
  CHECK_EQ(asText(*readFile(target)), "before");
  CHECK(writeFile(target, asBytes("after")).ok());
  CHECK_EQ(asText(*readFile(target)), "after");
  auto entries = std::filesystem::directory_iterator(check::folder());
  CHECK(std::none_of(begin(entries), end(entries), [](const auto &entry) {
    return entry.path().filename().string().starts_with("out.");
  }));
  CHECK_CONTAINS(writeFile(path("no/such/folder"), {}).error().text(),
                 "no/such/folder: error: cannot");
  CHECK_CONTAINS(writeFile("/dev/null", {}).error().text(),
                 "/dev/null: error: is not a regular file");
}

TEST(reading_past_the_end_is_an_error) {
  Result<InputFile> file = InputFile::open(write("short", "0123456789"));
  REQUIRE(file.ok());
  Bytes out(8);
  CHECK(file->read(2, out).ok());
  CHECK_CONTAINS(file->read(4, out).error().message,
                 "needs 8 bytes at offset 4, but the file ends at 10");
  // A file that shrinks while it is open.
  std::filesystem::resize_file(path("short"), 3);
  CHECK_CONTAINS(file->read(2, out).error().message, "but the file ends at 3");
  CHECK_CONTAINS(InputFile::open(path("missing")).error().message, "cannot open");
  CHECK_CONTAINS(InputFile::open(check::folder()).error().message, "is not a regular file");
}

/// A safetensors file of a header text and some bytes of data.
static Result<SafetensorsFile> tensors(std::string_view header, size_t dataBytes) {
  std::string content(8, '\0');
  for (int i = 0; i < 8; ++i)
    content[size_t(i)] = char(header.size() >> 8 * i);
  content += header;
  for (size_t i = 0; i < dataBytes; ++i)
    content += char('a' + i % 26);
  return SafetensorsFile::open(write("t.safetensors", content));
}

TEST(safetensors_reads) {
  auto file = tensors(R"({"__metadata__":{"format":"pt"},
      "b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},
      "a":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]},
      "none":{"dtype":"F32","shape":[0,7],"data_offsets":[6,6]}}  )",
                      14);
  REQUIRE(file.ok());
  CHECK_EQ(file->tensors().size(), 3u);
  const TensorInfo *b = file->find("b");
  REQUIRE(b);
  CHECK_EQ(b->dtype, "F32");
  CHECK_EQ(shapeText(file->find("a")->shape), "[3, 1]");
  CHECK_EQ(asText(*file->read(*b)), "ghijklmn");
  CHECK(!file->find("c"));
}

TEST(safetensors_refuses) {
  auto message = [](std::string_view header, size_t dataBytes) {
    auto file = tensors(header, dataBytes);
    return file.ok() ? std::string("accepted") : file.error().message;
  };
  auto one = [&](std::string_view entry) {
    return message("{\"a\":{" + std::string(entry) + "}}", 8);
  };
  CHECK_EQ(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "accepted");
  CHECK_CONTAINS(one(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"),
                 "tensor \"a\": unknown dtype \"F31\"");
  CHECK_CONTAINS(one(R"("dtype":4,"shape":[2],"data_offsets":[0,8])"), "unknown dtype 4");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "shape is not a list");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "shape is not a list");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"),
                 "F32 [2] has 8 bytes, but data_offsets [0, 4] are 4");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "end before they begin");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"),
                 "needs 8 bytes at offset");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), "not a pair");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
                 "larger than any file");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2])"), "key \"data_offsets\" is missing");
  CHECK_CONTAINS(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"),
                 "unknown key \"x\"");
  CHECK_CONTAINS(one(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"),
                 "key \"dtype\" occurs twice");
  CHECK_CONTAINS(message(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                             "b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                         8),
                 "tensor \"b\" at offset");
  CHECK_CONTAINS(message(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
                             "b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                         8),
                 "before tensor \"b\" belong to no tensor");
  CHECK_CONTAINS(message(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 8),
                 "at the end belong to no tensor");
  CHECK_CONTAINS(message(R"({"__metadata__":{"a":1}})", 0), "__metadata__ is not");
  CHECK_CONTAINS(message("[]", 0), "header: expected an object");
  CHECK_CONTAINS(message(std::string(1000, '['), 0), "nested deeper than 4 levels");
  CHECK_CONTAINS(SafetensorsFile::open(write("s", "1234567")).error().message, "has 7 bytes");
  CHECK_CONTAINS(
      SafetensorsFile::open(write("s", std::string("\xff\0\0\0\0\0\0\0{}", 10))).error().message,
      "header needs 255 bytes at offset 8, but the file ends at 10");
  CHECK_CONTAINS(
      SafetensorsFile::open(write("s", "\xff\xff\xff\xff\xff\xff\xff\xff{}")).error().message,
      "at most 100000000 are allowed");
}

TEST(npy_round_trip) {
  std::vector<float> values = {1, 2.5f, -3, 4, 5, 6};
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 3}, std::vector<int64_t>{6}, std::vector<int64_t>{1, 6, 1}}) {
    CHECK(writeNpy(path("a.npy"), "<f4", shape, std::as_bytes(std::span(values))).ok());
    Result<NpyArray> array = readNpy(path("a.npy"));
    REQUIRE(array.ok());
    CHECK_EQ(array->descr, "<f4");
    CHECK(array->shape == shape);
    CHECK(std::ranges::equal(array->as<float>(), values));
    CHECK_EQ((std::filesystem::file_size(path("a.npy")) - 24) % 64, 0u);
  }
}

TEST(npy_refuses) {
  auto header = [](std::string text) {
    std::string content("\x93NUMPY\1\0", 8);
    content += {char(text.size()), '\0'};
    Result<NpyArray> array = readNpy(write("b.npy", content + text + "12345678"));
    return array.ok() ? std::string("accepted") : array.error().message;
  };
  CHECK_EQ(header("{'shape': (2,), 'descr': '<f4', 'fortran_order': False}\n"), "accepted");
  // Each says what is wrong, and where.
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"),
           "the .npy header at offset 44: fortran_order is True, expected an array in C order");
  CHECK_EQ(header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"),
           "has elements of type '>f4', expected little-endian numbers");
  CHECK_EQ(header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"),
           "has elements of type '<c8', expected integers of 1 to 8 bytes or floats of 2 to 8");
  CHECK_EQ(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
           "the .npy header at offset 20: expected an element type in single quotes; arrays of "
           "records are not read");
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
           "truncated: <f4 of shape [3] needs 12 bytes at offset 67, but the file ends at 75");
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }"),
           "<f4 of shape [] has 4 bytes, but 8 follow at offset 65");
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
           "has the impossible shape [4294967296, 4294967296]");
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"),
           "the .npy header at offset 61: expected a tuple of numbers from 0");
  CHECK_EQ(header("{'descr': '<f4', 'fortran_order': False, }"),
           "the .npy header at offset 10: key 'shape' is missing");
  CHECK_EQ(header("{'descr': '<f4', 'descr': '<f4', }"),
           "the .npy header at offset 27: key 'descr' occurs twice");
  CHECK_EQ(header("{'order': 'C', }"), "the .npy header at offset 11: unknown key 'order'");
  CHECK_EQ(header("['descr']"), "the .npy header at offset 10: expected a dictionary");
  auto file = [](std::string_view content) {
    return readNpy(write("b.npy", std::string(content))).error().message;
  };
  CHECK_EQ(file("PK\3\4 something else"),
           "is not a .npy file: the first 6 bytes are not \"\\x93NUMPY\"");
  CHECK_EQ(file({"\x93NUMPY\4\1\0\0", 10}), "has .npy version 4.1 at offset 6, expected 1 to 3");
  CHECK_EQ(file({"\x93NUMPY\1", 7}),
           "truncated: the version needs 2 bytes at offset 6, but the file ends at 7");
  CHECK_EQ(file({"\x93NUMPY\2\0\1\0", 10}),
           "truncated: the header's length needs 4 bytes at offset 8, but the file ends at 10");
  CHECK_EQ(file({"\x93NUMPY\1\0\x76\0{", 11}),
           "truncated: the header needs 118 bytes at offset 10, but the file ends at 11");
}

TEST(hash_is_xxh3) { CHECK_EQ(digest(""), "xxh3:2d06800538d394c2"); }

CHECK_MAIN
