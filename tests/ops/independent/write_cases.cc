// write_cases FOLDER: every case of every operator (src/ops/cases) with what the interpreter makes
// of it, for independent_test.py: cases.json lists them, with the place of each tensor in data.bin.
// Elementwise operators of floats come once more, with infinities, NaN and other extremes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ir/op.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage {
namespace {

using Json = nlohmann::json;

using Limits = std::numeric_limits<float>;
constexpr float kExtremes[] = {Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN(),
                               0.0f,
                               -0.0f,
                               Limits::max(),
                               Limits::lowest(),
                               Limits::min(),
                               Limits::denorm_min(),
                               0.5f,
                               -0.5f,
                               1.0f,
                               -1.0f,
                               2.5f,
                               -1e4f};

Json to_json(const AttrValue& value) {
  return std::visit(
      []<typename T>(const T& v) -> Json {
        if constexpr (std::is_same_v<T, None>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, DType>) {
          return dtype_name(v);
        } else {
          return v;
        }
      },
      value);
}

class Writer {
 public:
  explicit Writer(const std::string& folder)
      : index_(folder + "/cases.json"), data_(folder + "/data.bin", std::ios::binary) {}

  Status add(const OpCase& c, bool extremes) {
    OpCaseFunction built = TRY(build_case(c, 11));
    if (extremes) std::for_each(built.inputs.begin(), built.inputs.end(), fill_with_extremes);
    const std::vector<Tensor> results = TRY(interpret(built.function, built.inputs));
    const auto* call = as<CallNode>(built.function->body);
    Json attrs = Json::object(), args = Json::array(), given = Json::array();
    for (const auto& [name, value] : call->attrs.entries()) attrs[name] = to_json(value);
    std::vector<Expr> exprs = call->args;
    if (c.as_tuple) exprs = as<TupleNode>(call->args[0])->fields;
    for (size_t i = 0, input = 0; i < exprs.size(); ++i) {
      const auto* constant = as<ConstantNode>(exprs[i]);
      args.push_back(stored(constant != nullptr ? constant->value : built.inputs.at(input++)));
    }
    for (const Tensor& result : results) given.push_back(stored(result));
    cases_.push_back({{"op", c.op},
                      {"text", c.to_string() + (extremes ? " of extremes" : "")},
                      {"attrs", attrs},
                      {"args", args},
                      {"results", given}});
    return {};
  }

  bool finish() {
    index_ << cases_.dump(1) << "\n";
    return static_cast<bool>(index_.flush()) && static_cast<bool>(data_.flush());
  }

 private:
  static void fill_with_extremes(Tensor& tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data<float>()[i] = kExtremes[static_cast<size_t>(i) % std::size(kExtremes)];
  }

  Json stored(const Tensor& tensor) {
    const Json place = {
        {"dtype", dtype_name(tensor.dtype())}, {"shape", tensor.shape()}, {"at", at_}};
    data_.write(static_cast<const char*>(tensor.raw()),
                static_cast<std::streamsize>(tensor.bytes()));
    at_ += tensor.bytes();
    return place;
  }

  std::ofstream index_, data_;
  size_t at_ = 0;
  Json cases_ = Json::array();
};

bool is_float(const OpArg& arg) { return arg.type.dtype == DType::kFloat32 && !arg.is_constant; }

/// The case with arguments in whose place extremes are tried, all pairs of two; nothing where the
/// operator computes no floats element by element, or had its turn.
std::optional<OpCase> with_extremes(OpCase c, std::set<std::string>& had) {
  constexpr int64_t kCount = std::size(kExtremes);
  const FusionKind kind = find_op(c.op)->kind;
  const bool elementwise = kind == FusionKind::kElementwise || kind == FusionKind::kBroadcast;
  if (!elementwise || c.as_tuple || c.op == "cast" || c.args.size() > 2 ||
      !std::all_of(c.args.begin(), c.args.end(), is_float) || !had.insert(c.op).second)
    return std::nullopt;
  c.args[0].type.shape = {kCount, 1};
  if (c.args.size() == 2) c.args[1].type.shape = {1, kCount};
  return c;
}

Status write(const std::string& folder) {
  register_all_ops();
  Writer writer(folder);
  std::set<std::string> had;
  for (const OpCase& c : op_cases()) {
    TRY(writer.add(c, false));
    if (const auto extremes = with_extremes(c, had)) TRY(writer.add(*extremes, true));
  }
  if (!writer.finish()) return error(ErrorCode::kUnavailable, "cannot write to {}", folder);
  return {};
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_cases FOLDER\n", stderr);
    return 2;
  }
  const collage::Status status = collage::write(argv[1]);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.to_string());
  return status.ok() ? 0 : 1;
}
