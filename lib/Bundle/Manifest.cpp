//===- Manifest.cpp - the manifest as JSON --------------------------------===//
//
// Each struct lists its fields once, in `fields`; one visitor writes them, another reads them and
// refuses whatever the list does not name. So the two directions cannot drift apart.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>

using namespace planc;
using namespace planc::bundle;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

template <class E> struct Word {
  E value;
  const char *text;
};

static constexpr Word<Dtype> dtypeWords[] = {{Dtype::bf16, "bf16"},
                                             {Dtype::f32, "f32"},
                                             {Dtype::i32, "i32"},
                                             {Dtype::i64, "i64"},
                                             {Dtype::e4m3, "e4m3"}};
static constexpr Word<ArgKind> argKindWords[] = {
    {ArgKind::buffer, "buffer"}, {ArgKind::weight, "weight"},   {ArgKind::state, "state"},
    {ArgKind::input, "input"},   {ArgKind::scratch, "scratch"}, {ArgKind::counters, "counters"}};

static constexpr auto &wordsOf(Dtype) { return dtypeWords; }
static constexpr auto &wordsOf(ArgKind) { return argKindWords; }
static constexpr auto &wordsOf(numerics::LevelKind) { return numerics::levelKindWords; }

template <class E> static const char *wordFor(E value) {
  for (const auto &word : wordsOf(value))
    if (word.value == value)
      return word.text;
  return "";
}

const char *bundle::toString(Dtype dtype) { return wordFor(dtype); }
const char *bundle::toString(ArgKind kind) { return wordFor(kind); }

uint64_t bundle::byteSize(Dtype dtype) {
  switch (dtype) {
  case Dtype::bf16:
    return 2;
  case Dtype::f32:
  case Dtype::i32:
    return 4;
  case Dtype::i64:
    return 8;
  case Dtype::e4m3:
    return 1;
  }
  return 0;
}

const char *bundle::safetensorsName(Dtype dtype) {
  switch (dtype) {
  case Dtype::bf16:
    return "BF16";
  case Dtype::f32:
    return "F32";
  case Dtype::i32:
    return "I32";
  case Dtype::i64:
    return "I64";
  case Dtype::e4m3:
    return "F8_E4M3";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// The fields of every struct, in the order they are written
//===----------------------------------------------------------------------===//

template <class V> static void fields(V &v, Provenance &s) {
  v("planc", s.planc);
  v("llvm", s.llvm);
  v("ptxas", s.ptxas);
  v("config_digest", s.config_digest);
}
template <class V> static void fields(V &v, Model &s) {
  v("vocab", s.vocab);
  v("max_context", s.max_context);
  v("kv_block", s.kv_block);
  v("dims", s.dims);
}
template <class V> static void fields(V &v, Target &s) {
  v("name", s.name);
  v("sm", s.sm);
  v("product", s.product);
}
template <class V> static void fields(V &v, Arg &s) {
  v("kind", s.kind);
  v("name", s.name);
  v("part", s.part);
}
template <class V> static void fields(V &v, HostOp &s) {
  v("op", s.op);
  v("node", s.node);
  v("inputs", s.inputs);
  v("outputs", s.outputs);
  v("weight", s.weight);
}
template <class V> static void fields(V &v, Launch &s) {
  v("group", s.group);
  v("rule", s.rule);
  v("where", s.where);
  v("nodes", s.nodes);
  v("kernel", s.kernel);
  v("note", s.note);
  v("args", s.args);
  v("host", s.host);
}
template <class V> static void fields(V &v, Buffer &s) {
  v("edge", s.edge);
  v("dtype", s.dtype);
  v("rows", s.rows);
  v("dim", s.dim);
  v("bytes", s.bytes);
  v("offset", s.offset);
  v("unshared_offset", s.unshared_offset);
  v("def", s.def);
  v("last_use", s.last_use);
  v("host_writes", s.host_writes);
  v("host_reads", s.host_reads);
}
template <class V> static void fields(V &v, Input &s) {
  v("name", s.name);
  v("dtype", s.dtype);
  v("shape", s.shape);
}
template <class V> static void fields(V &v, Workspace &s) {
  v("bytes", s.bytes);
  v("unshared_bytes", s.unshared_bytes);
  v("scratch_bytes", s.scratch_bytes);
  v("counters", s.counters);
}
template <class V> static void fields(V &v, Program &s) {
  v("name", s.name);
  v("mode", s.mode);
  v("rows", s.rows);
  v("plan_digest", s.plan_digest);
  v("nodes", s.nodes);
  v("groups", s.groups);
  v("launches", s.launches);
  v("launch_list", s.launch_list);
  v("buffers", s.buffers);
  v("inputs", s.inputs);
  v("workspace", s.workspace);
}
template <class V> static void fields(V &v, Param &s) {
  v("kind", s.kind);
  v("dtype", s.dtype);
  v("shape", s.shape);
  v("written", s.written);
}
template <class V> static void fields(V &v, KernelTarget &s) {
  v("entry", s.entry);
  v("grid", s.grid);
  v("block", s.block);
  v("shared_bytes", s.shared_bytes);
  v("static_shared_bytes", s.static_shared_bytes);
  v("scratch_bytes", s.scratch_bytes);
  v("counters", s.counters);
  v("registers", s.registers);
  v("stack_bytes", s.stack_bytes);
  v("spill_bytes", s.spill_bytes);
  v("code_bytes", s.code_bytes);
  v("ptx_bytes", s.ptx_bytes);
  v("ptx", s.ptx);
  v("cubin", s.cubin);
}
template <class V> static void fields(V &v, numerics::Level &s) {
  v("kind", s.kind);
  v("terms", s.terms);
  v("span", s.span);
}
template <class V> static void fields(V &v, numerics::Part &s) {
  v("name", s.name);
  v("levels", s.levels);
  v("units", s.units);
  v("absolute", s.absolute);
  v("source", s.source);
}
template <class V> static void fields(V &v, numerics::Node &s) {
  v("op", s.op);
  v("parts", s.parts);
}
template <class V> static void fields(V &v, Kernel &s) {
  v("name", s.name);
  v("schedule", s.schedule);
  v("numerics", s.numerics);
  v("compute", s.compute);
  v("arithmetic", s.arithmetic);
  v("params", s.params);
  v("targets", s.targets);
}
template <class V> static void fields(V &v, Part &s) {
  v("pattern", s.pattern);
  v("shape", s.shape);
  v("dtypes", s.dtypes);
  v("target", s.target);
  v("offset", s.offset);
  v("strides", s.strides);
}
template <class V> static void fields(V &v, Weight &s) {
  v("name", s.name);
  v("node", s.node);
  v("format", s.format);
  v("layout", s.layout);
  v("shape", s.shape);
  v("bytes", s.bytes);
  v("scale_shape", s.scale_shape);
  v("scale_bytes", s.scale_bytes);
  v("host", s.host);
  v("parts", s.parts);
}
template <class V> static void fields(V &v, State &s) {
  v("name", s.name);
  v("layer", s.layer);
  v("kind", s.kind);
  v("dtype", s.dtype);
  v("shape", s.shape);
  v("bytes", s.bytes);
}
template <class V> static void fields(V &v, Section &s) {
  v("name", s.name);
  v("offset", s.offset);
  v("bytes", s.bytes);
  v("xxh3", s.xxh3);
}
template <class V> static void fields(V &v, Manifest &s) {
  v("format_version", s.format_version);
  v("provenance", s.provenance);
  v("model", s.model);
  v("targets", s.targets);
  v("programs", s.programs);
  v("kernels", s.kernels);
  v("weights", s.weights);
  v("states", s.states);
  v("sections", s.sections);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
class Writer {
public:
  template <class T> void operator()(const char *name, T &value) { json[name] = write(value); }

  Json json = Json::object();

private:
  template <class T> static Json write(T &value) {
    if constexpr (std::is_enum_v<T>) {
      return toString(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Writer writer;
      fields(writer, value);
      return std::move(writer.json);
    }
  }
  template <class T> static Json write(std::optional<T> &value) {
    return value ? write(*value) : Json(nullptr);
  }
  template <class T> static Json write(std::vector<T> &values) {
    Json list = Json::array();
    for (T &value : values)
      list.push_back(write(value));
    return list;
  }
  static Json write(Dim3 &dim) { return {dim[0], dim[1], dim[2]}; }
  template <class T> static Json write(std::map<std::string, T> &values) {
    Json object = Json::object();
    for (auto &[key, value] : values)
      object[key] = write(value);
    return object;
  }
};
} // namespace

// Both visitors share one field list, which takes the struct as mutable: hence the copies.
Json bundle::toJson(const Manifest &manifest) {
  Writer writer;
  Manifest copy = manifest;
  fields(writer, copy);
  return std::move(writer.json);
}

Json bundle::toJson(const std::vector<numerics::Node> &arithmetic) {
  Json list = Json::array();
  for (numerics::Node node : arithmetic) {
    Writer writer;
    fields(writer, node);
    list.push_back(std::move(writer.json));
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Where a value stands: its key or index, and what holds it. Only a refusal writes the path out,
/// since a manifest has tens of thousands of values.
struct Place {
  const Place *parent = nullptr;
  std::string_view key = {};
  size_t index = 0;

  std::string path() const {
    if (!parent)
      return "";
    return parent->path() + "/" + (key.data() ? std::string(key) : std::to_string(index));
  }
};

/// Reads one object; the first problem is kept in `problem`, with the path that leads to it.
class Reader {
public:
  Reader(const Json &object, const Place &place, std::string &problem)
      : object(object), place(place), problem(problem) {
    if (!object.is_object())
      refuse(place, "expected an object");
  }

  template <class T> void operator()(const char *name, T &value) {
    if (!problem.empty())
      return;
    // Keys come mostly in the order of writing; then no search is needed.
    const auto &members = object.get_ref<const Json::object_t &>();
    auto at = members.begin() + std::min(next, members.size());
    if (at == members.end() || at->first != name)
      at = std::find_if(members.begin(), members.end(),
                        [&](const auto &member) { return member.first == name; });
    if (at == members.end())
      return refuse(place, fmt::format("key \"{}\" is missing", name));
    next = size_t(at - members.begin()) + 1;
    known.push_back(name);
    read(at->second, Place{&place, name}, value);
  }

  /// After all fields: is there a key that no field claimed?
  void finish() {
    if (!problem.empty() || object.size() == known.size())
      return;
    for (const auto &[key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return refuse(place, fmt::format("unknown key \"{:.60}\"", key));
  }

private:
  void refuse(const Place &where, const std::string &what) {
    if (problem.empty())
      problem = fmt::format("{}: {}", where.parent ? where.path() : "/", what);
  }

  template <class T> void read(const Json &json, const Place &where, T &value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean())
        return refuse(where, "expected true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_enum_v<T>) {
      readWord(json, where, value);
    } else if constexpr (std::is_integral_v<T>) {
      readNumber(json, where, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string())
        return refuse(where, "expected a string");
      value = json.get<std::string>();
      checkText(value, where);
    } else {
      Reader reader(json, where, problem);
      if (!problem.empty())
        return;
      fields(reader, value);
      reader.finish();
    }
  }
  template <class T> void read(const Json &json, const Place &where, std::optional<T> &value) {
    if (json.is_null())
      return value.reset();
    read(json, where, value.emplace());
  }
  template <class T> void read(const Json &json, const Place &where, std::vector<T> &values) {
    if (!json.is_array())
      return refuse(where, "expected a list");
    values.resize(json.size());
    for (size_t i = 0; i < json.size() && problem.empty(); ++i)
      read(json[i], Place{&where, {}, i}, values[i]);
  }
  void read(const Json &json, const Place &where, Dim3 &dim) {
    if (!json.is_array() || json.size() != 3)
      return refuse(where, "expected three numbers");
    for (size_t i = 0; i < 3 && problem.empty(); ++i)
      readNumber(json[i], Place{&where, {}, i}, dim[i]);
  }
  template <class T>
  void read(const Json &json, const Place &where, std::map<std::string, T> &values) {
    if (!json.is_object())
      return refuse(where, "expected an object");
    for (const auto &[key, member] : json.items()) {
      checkText(key, where);
      if (problem.empty())
        read(member, Place{&where, key}, values[key]);
    }
  }

  /// Names go through C interfaces, which would cut them.
  void checkText(const std::string &text, const Place &where) {
    if (text.find('\0') != std::string::npos)
      refuse(where, "a string with a NUL byte");
  }

  template <class T> void readNumber(const Json &json, const Place &where, T &value) {
    // Non-negative numbers are all that a manifest has; the parser calls these unsigned.
    if (!json.is_number_unsigned())
      return refuse(where, "expected a non-negative integer");
    uint64_t number = json.get<uint64_t>();
    if (number > uint64_t(std::numeric_limits<T>::max()))
      return refuse(where, fmt::format("{} does not fit, at most {} does", number,
                                       std::numeric_limits<T>::max()));
    value = T(number);
  }
  template <class E> void readWord(const Json &json, const Place &where, E &value) {
    if (json.is_string())
      for (const auto &word : wordsOf(E{}))
        if (json.get_ref<const std::string &>() == word.text) {
          value = word.value;
          return;
        }
    std::string expected;
    for (const auto &word : wordsOf(E{}))
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", word.text);
    refuse(where, "expected one of " + expected);
  }

  const Json &object;
  const Place &place;
  std::string &problem;
  std::vector<std::string_view> known;
  size_t next = 0;
};
} // namespace

Result<Manifest> bundle::fromJson(const Json &json) {
  Manifest manifest;
  std::string problem;
  Place top;
  Reader reader(json, top, problem);
  if (problem.empty()) {
    fields(reader, manifest);
    reader.finish();
  }
  if (!problem.empty())
    return Error{"manifest at " + problem};
  return manifest;
}

Result<std::vector<numerics::Node>> bundle::arithmeticFromJson(const Json &json) {
  std::vector<numerics::Node> arithmetic;
  std::string problem;
  for (size_t i = 0; json.is_array() && i < json.size() && problem.empty(); ++i) {
    Place top, place{&top, {}, i};
    Reader reader(json[i], place, problem);
    if (problem.empty()) {
      fields(reader, arithmetic.emplace_back());
      reader.finish();
    }
  }
  if (!json.is_array())
    problem = "/: expected a list";
  if (!problem.empty())
    return Error{"arithmetic at " + problem};
  return arithmetic;
}

//===----------------------------------------------------------------------===//
// Look-ups and patterns
//===----------------------------------------------------------------------===//

template <class T> static const T *findByName(const std::vector<T> &list, std::string_view name) {
  auto at =
      std::find_if(list.begin(), list.end(), [&](const T &item) { return item.name == name; });
  return at == list.end() ? nullptr : &*at;
}

const Kernel *Manifest::findKernel(std::string_view name) const {
  return findByName(kernels, name);
}
const Weight *Manifest::findWeight(std::string_view name) const {
  return findByName(weights, name);
}
const State *Manifest::findState(std::string_view name) const { return findByName(states, name); }
const Program *Manifest::findProgram(std::string_view name) const {
  return findByName(programs, name);
}

uint64_t Pattern::count() const {
  uint64_t product = 1;
  for (const PatternIndex &index : indices)
    product *= index.last - index.first + 1;
  return product;
}

std::string Pattern::name(uint64_t n) const {
  std::vector<uint64_t> numbers(indices.size());
  for (size_t i = indices.size(); i-- > 0;) {
    uint64_t extent = indices[i].last - indices[i].first + 1;
    numbers[i] = n % extent;
    n /= extent;
  }
  std::string result = text[0];
  for (size_t i = 0; i < numbers.size(); ++i)
    result += fmt::format("{}{}", indices[i].first + numbers[i], text[i + 1]);
  return result;
}

uint64_t Pattern::offset(uint64_t n, const Part &part) const {
  // Asked for each tensor of each weight whenever a bundle is opened: hence no list of the numbers.
  uint64_t result = part.offset;
  for (size_t i = indices.size(); i-- > 0;) {
    uint64_t extent = indices[i].last - indices[i].first + 1;
    result += n % extent * part.strides[i];
    n /= extent;
  }
  return result;
}

Result<Pattern> bundle::parsePattern(std::string_view pattern) {
  // One index a tensor list, and no more tensors than any checkpoint has.
  constexpr uint64_t maxIndex = 1 << 20;
  Pattern result;
  std::string_view rest = pattern;
  while (true) {
    size_t open = rest.find('{');
    result.text.emplace_back(rest.substr(0, open));
    if (result.text.back().find('}') != std::string::npos)
      return inputError("pattern \"{}\" closes a brace that is not open", pattern);
    if (open == std::string_view::npos)
      return result;
    size_t close = rest.find('}', open);
    std::string_view inside =
        close == std::string_view::npos ? "" : rest.substr(open + 1, close - open - 1);
    size_t colon = inside.find(':'), dots = inside.find("..");
    PatternIndex index;
    auto number = [](std::string_view digits, uint64_t &value) {
      auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
      return error == std::errc() && end == digits.end() && value < maxIndex;
    };
    if (colon == std::string_view::npos || dots == std::string_view::npos || dots < colon ||
        !number(inside.substr(colon + 1, dots - colon - 1), index.first) ||
        !number(inside.substr(dots + 2), index.last) || index.last < index.first)
      return inputError("pattern \"{}\" needs indices like {{e:0..255}}", pattern);
    result.indices.push_back(index);
    if (result.count() > maxIndex)
      return inputError("pattern \"{}\" names more than {} tensors", pattern, maxIndex);
    rest = rest.substr(close + 1);
  }
}
