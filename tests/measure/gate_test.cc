// What the check of kernels refuses, for every operator: a tap, an entry of a bias or a channel
// that does not count, an error of a thousandth; alone and before ten more convolutions. A new
// operator brings its cases (src/ops/cases) and is refused like the others.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "networks.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "verify/operator_rounding.h"

namespace collage {
namespace {

using testing::Fault;
using testing::on_trial_data;

bool within(const std::vector<Tensor>& actual, RoundingErrors& errors, const Rounding& rounding) {
  for (size_t o = 0; o < actual.size(); ++o)
    if (!errors.compare(o, actual[o], rounding).value().within) return false;
  return true;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t o = 0; o < a.size(); ++o)
    if (!compare_tensors(a[o], b[o], {}).within) return false;
  return true;
}

std::vector<Tensor> scaled(const std::vector<Tensor>& tensors, float factor) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) {
    result.push_back(tensor.clone());
    if (tensor.dtype() != DType::kFloat32) continue;
    for (int64_t i = 0; i < tensor.size(); ++i) result.back().data<float>()[i] *= factor;
  }
  return result;
}

// How many of the faults change anything; those must be refused, whatever else the kernel rounds.
int check_faults(const Function& function, const std::vector<Fault>& faults,
                 const std::vector<Rounding>& roundings = {Rounding()}) {
  RoundingErrors errors = on_trial_data(function);
  int telling = 0;
  for (const Rounding& rounding : roundings)
    EXPECT_TRUE(within(errors.expected(), errors, rounding));
  for (const Fault& fault : faults) {
    const std::vector<Tensor> wrong =
        interpret(inline_calls(fault.function).value(), errors.inputs()).value();
    if (equal(wrong, errors.expected())) continue;
    ++telling;
    for (const Rounding& rounding : roundings)
      EXPECT_FALSE(within(wrong, errors, rounding))
          << fault.name << ", sums " << rounding.sums << ", factors " << rounding.factors << ", "
          << errors.compare(0, wrong[0], rounding).value().mean_of_allowed << " of allowed";
  }
  return telling;
}

bool all_are_numbers(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (!std::isfinite(tensor.element_as_double(i))) return false;
  return true;
}

// The operator's first result as an image, then ten convolutions. Null: no float32 comes out.
Function before_a_network(const Function& function) {
  Expr x = function->body;
  if (x->type().is_tuple()) x = make_tuple_get_item(x, 0).value();
  if (!x->type().is_tensor() || x->tensor_type().dtype != DType::kFloat32) return nullptr;
  const int64_t elements = num_elements(x->tensor_type().shape);
  if (elements == 0 || elements > 6000) return nullptr;
  testing::Weights weights;
  x = make_call("reshape", {x}, {{"newshape", Ints{1, elements}}}).value();
  x = make_call("nn.dense", {x, weights.of({576, elements})}).value();
  x = make_call("reshape", {x}, {{"newshape", Ints{1, 16, 6, 6}}}).value();
  return make_function(function->params, testing::residual_blocks(x, 5, weights));
}

// Cases in float32 of operators that compute; by operator.
struct Case {
  OpCase op_case;
  Function function;
};
std::map<std::string, std::vector<Case>> cases_that_compute() {
  register_all_ops();
  std::map<std::string, std::vector<Case>> result;
  for (const OpCase& op_case : op_cases()) {
    const Function function = build_case(op_case, 3).value().function;
    const auto* call = as<CallNode>(function->body);
    bool reals = true;
    for (const TensorType& leaf : function->result_type().leaves())
      reals = reals && leaf.dtype == DType::kFloat32 && num_elements(leaf.shape) > 0;
    if (call == nullptr || !reals || operator_rounding(*call).results == 0) continue;
    result[op_case.op].push_back({op_case, function});
  }
  return result;
}

TEST(Gate, EveryOperatorThatComputesHasCases) {
  const auto cases = cases_that_compute();
  EXPECT_GT(cases.size(), 60U);
  for (const char* family : {"nn.conv1d",
                             "nn.conv2d",
                             "nn.conv3d",
                             "nn.conv1d_transpose",
                             "nn.conv2d_transpose",
                             "nn.conv3d_transpose",
                             "nn.dense",
                             "nn.matmul",
                             "nn.batch_matmul",
                             "nn.bias_add",
                             "nn.avg_pool2d",
                             "nn.global_avg_pool2d",
                             "nn.layer_norm",
                             "nn.batch_norm",
                             "nn.instance_norm",
                             "nn.group_norm",
                             "nn.softmax",
                             "nn.attention",
                             "image.resize2d",
                             "cumsum",
                             "sum",
                             "mean",
                             "prod",
                             "add",
                             "multiply",
                             "nn.gelu",
                             "tanh",
                             "exp"})
    EXPECT_EQ(cases.count(family), 1U) << family;
}

TEST(Gate, RefusesWhatDoesNotCount) {
  for (const auto& [op, cases] : cases_that_compute()) {
    int telling = 0;
    size_t faulty = 0;
    for (const Case& c : cases) {
      SCOPED_TRACE(c.op_case.to_string());
      const std::vector<Fault> faults = testing::faults_of(c.function);
      faulty += faults.size();
      telling += check_faults(c.function, faults);
    }
    if (faulty > 0) {  // else it reads integers alone
      EXPECT_GT(telling, 0) << op;
    }
  }
}

TEST(Gate, RefusesAThousandth) {
  for (const auto& [op, cases] : cases_that_compute())
    for (const Case& c : cases) {
      RoundingErrors errors = on_trial_data(c.function);
      const std::vector<Tensor> wrong = scaled(errors.expected(), 1.001f);
      if (equal(wrong, errors.expected())) continue;  // zeros
      EXPECT_FALSE(within(wrong, errors, {})) << c.op_case.to_string();
    }
}

TEST(Gate, RefusesWhatDoesNotCountBeforeTenConvolutions) {
  int operators = 0;
  for (const auto& [op, cases] : cases_that_compute()) {
    int telling = 0, tried = 0;
    for (const Case& c : cases) {
      const Function whole = before_a_network(c.function);
      // Where one element is no number, none of the network's results is.
      if (whole == nullptr || tried > 0 || testing::faults_of(c.function).empty() ||
          !all_are_numbers(on_trial_data(whole).expected()))
        continue;
      ++tried;
      SCOPED_TRACE(c.op_case.to_string());
      std::vector<Fault> faults;
      for (Fault& fault : testing::faults_of(c.function))
        faults.push_back({std::move(fault.name), before_a_network(fault.function)});
      telling += check_faults(whole, faults);
    }
    if (tried == 0) continue;
    EXPECT_GT(telling, 0) << op;
    ++operators;
  }
  EXPECT_GT(operators, 60);
}

TEST(Gate, RefusesEveryFaultOfAResidualNetwork) {
  register_all_ops();
  const Function network = testing::residual_network(6, 24, 12);
  const std::vector<Fault> faults = testing::faults_of(network);
  EXPECT_EQ(check_faults(network, faults, {{}, rounding::kWinograd4, rounding::kBFloat16Pairs}),
            27);
}

TEST(Gate, RefusesEveryFaultOfATransformer) {
  register_all_ops();
  const Function network = testing::transformer(4, 24, 64);
  const std::vector<Fault> faults = testing::faults_of(network);
  EXPECT_EQ(check_faults(network, faults), static_cast<int>(faults.size()));
}

}  // namespace
}  // namespace collage
