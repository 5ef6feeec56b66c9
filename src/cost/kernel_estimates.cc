#include "cost/kernel_estimates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/statistics.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ir/work.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kTerms = 4, kEnoughSamples = 6;
// The family of what only passes over its tensors.
constexpr const char* kElementwise = "elementwise";
constexpr double kMostCoefficient = 1e9;

using Terms = std::array<double, kTerms>;

// What each coefficient is multiplied with, in seconds.
Terms terms_of(const KernelWork& work, const MachineSpeed& speed) {
  constexpr double kSecond = 1e-6;  // so that coefficients are of about one size
  return {kSecond, work.operations / speed.float32, work.activations / speed.float32,
          work.constants / speed.memory};
}

std::string family_of(const CallNode& call) {
  std::string family = call.op->name;
  if (!family.starts_with("nn.conv") && !family.starts_with("qnn.conv")) return family;
  const Shape& weight = call.args.at(1)->tensor_type().shape;
  if (call.attrs.has("groups") && call.attrs.integer("groups") > 1)
    family += weight.at(1) == 1 ? " depthwise" : " grouped";
  const bool is_product =
      std::all_of(weight.begin() + 2, weight.end(), [](int64_t extent) { return extent == 1; });
  return family + (is_product ? " 1x1" : "");
}

// To a few digits.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

double sum_of(const Terms& coefficients, const Terms& terms) {
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += coefficients[i] * terms[i];
  return sum;
}

// Those by which each row adds up to about 1, by least squares, one coefficient after the other;
// then scaled so that half of the kernels take more, half less: squares of relative errors make too
// much of those that took less than expected.
Terms least_squares(const std::vector<Terms>& rows) {
  constexpr int kPasses = 5000;
  std::array<Terms, kTerms> a{};
  Terms b{}, found{};
  for (const Terms& row : rows)
    for (size_t i = 0; i < kTerms; ++i) {
      b[i] += row[i];
      for (size_t j = 0; j < kTerms; ++j) a[i][j] += row[i] * row[j];
    }
  for (int pass = 0; pass < kPasses; ++pass)
    for (size_t i = 0; i < kTerms; ++i)
      if (a[i][i] > 0) found[i] = std::max(0.0, found[i] + (b[i] - sum_of(a[i], found)) / a[i][i]);
  std::vector<double> sums;
  for (const Terms& row : rows) sums.push_back(sum_of(found, row));
  const double middle = median(sums);
  for (double& coefficient : found) coefficient /= middle;
  return found;
}

}  // namespace

std::string algorithm_of(const Variant& variant) {
  return fmt::format("{} {:.2g}", variant.work.unit, variant.work.multiplications);
}

KernelWork work_of(const Function& function, const Variant& variant, CacheState cache) {
  KernelWork work;
  double most = -1;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || call->op->is_view) continue;
    const double operations = call_flops(*call);
    // Of operators that fuse into others the kind says little.
    const bool is_anchor = call->op->kind > FusionKind::kInjective;
    const double weight = is_anchor ? operations : 0;
    work.operations += operations * (is_anchor ? variant.work.multiplications : 1);
    if (weight <= most && work.family != kElementwise) continue;
    most = weight;
    work.family = is_anchor                                  ? family_of(*call)
                  : call->op->kind == FusionKind::kInjective ? call->op->name
                                                             : kElementwise;
  }
  const double constants = constant_bytes(function) * variant.work.constants;
  work.activations =
      variant.work.in_place ? 0 : function_bytes(function) - constant_bytes(function);
  (cache == CacheState::kWarm ? work.activations : work.constants) += constants;
  return work;
}

KernelWork work_of(const TensorType& type, const Encoding& from, const Encoding& to) {
  const auto elements = static_cast<double>(num_elements(type.shape));
  const std::string family = from.dtype != to.dtype ? "type" : "layout";
  return {family, 0, elements * static_cast<double>(dtype_size(from.dtype) + dtype_size(to.dtype)),
          0};
}

KernelEstimates KernelEstimates::fit(const std::vector<Sample>& samples,
                                     const MachineSpeed& speed) {
  std::map<std::array<std::string, 3>, std::vector<const Sample*>> alike;
  for (const Sample& sample : samples) {
    alike[{sample.target, sample.work.family, sample.algorithm}].push_back(&sample);
    alike[{sample.target, sample.work.family, ""}].push_back(&sample);
    alike[{sample.target, "", ""}].push_back(&sample);
  }
  KernelEstimates estimates;
  for (const auto& [key, some] : alike) {
    if (some.size() < kEnoughSamples) continue;
    std::vector<Terms> rows;
    for (const Sample* sample : some) {
      Terms row = terms_of(sample->work, speed);
      for (double& term : row) term /= sample->seconds;
      rows.push_back(row);
    }
    estimates.known_[key] = least_squares(rows);
  }
  return estimates;
}

std::optional<double> KernelEstimates::seconds(const std::string& target,
                                               const std::string& algorithm, const KernelWork& work,
                                               const MachineSpeed& speed) const {
  if (speed.float32 <= 0 || speed.memory <= 0) return std::nullopt;
  for (const auto& [family, name] : {std::pair(work.family, algorithm),
                                     {work.family, std::string()},
                                     {std::string(), std::string()}})
    if (const auto found = known_.find({target, family, name}); found != known_.end())
      return sum_of(found->second, terms_of(work, speed));
  return std::nullopt;
}

std::vector<json> KernelEstimates::to_json() const {
  std::vector<json> lines;
  for (const auto& [key, terms] : known_)
    lines.push_back({key[0], key[1], key[2], rounded(terms[0]), rounded(terms[1]),
                     rounded(terms[2]), rounded(terms[3])});
  return lines;
}

Status KernelEstimates::add(const json& line) {
  const auto is_text = [](const json& field) { return field.is_string(); };
  const auto is_coefficient = [](const json& field) {
    return field.is_number() && field.get<double>() >= 0 && field.get<double>() <= kMostCoefficient;
  };
  if (!line.is_array() || line.size() != 3 + kTerms ||
      !std::all_of(line.begin(), line.begin() + 3, is_text) ||
      !std::all_of(line.begin() + 3, line.end(), is_coefficient))
    return bad_model("a line of estimates that is none");
  Terms& terms = known_[{line[0], line[1], line[2]}];
  for (size_t i = 0; i < kTerms; ++i) terms[i] = line[3 + i];
  return {};
}

}  // namespace collage
