#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/check.h"
#include "backend/offer.h"
#include "ir/op.h"
#include "ops/interpreter.h"

namespace collage::testing {

namespace {

bool is_nan(const Tensor& tensor, int64_t at) {
  return is_float(tensor.dtype()) && std::isnan(tensor.element_as_double(at));
}

}  // namespace

void check_nan(const Backend& backend, Kernel& kernel, const Function& function,
               const Variant& variant, const std::vector<Tensor>& inputs) {
  constexpr int64_t kMost = 20000;  // results; of more it takes too long
  const Result<bool> may_lose = may_lose_nan(backend, function);
  ASSERT_TRUE(may_lose.ok()) << may_lose.status().to_string();
  if (*may_lose || variant.spreads_nan || variant.lowered()) return;
  // Whether a neighbour of weight 0 is read, where an interpolation meets a pixel, rounding
  // decides.
  const auto* call = as<CallNode>(function->body);
  if (call != nullptr && call->op != nullptr && call->op->name.starts_with("image.resize")) return;
  // The padding of blocks is zero times a NaN.
  for (const Encoding& encoding : variant.outputs)
    if (!encoding.layout.blocks().empty()) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DType::kFloat32 || inputs[i].size() == 0) continue;
    std::vector<Tensor> planted = inputs;
    planted[i] = inputs[i].clone();
    const int64_t at = planted[i].size() * 2 / 3;
    planted[i].data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    const Result<std::vector<Tensor>> expected = interpret(function, planted);
    if (!expected.ok() || (*expected)[0].size() > kMost) return;
    const std::vector<Tensor> got = run_guarded(kernel, function, variant, planted);
    for (size_t o = 0; o < got.size(); ++o) {
      int64_t others = 0, first = 0;
      for (int64_t e = got[o].size(); e-- > 0;)
        if (is_nan(got[o], e) != is_nan((*expected)[o], e)) ++others, first = e;
      EXPECT_EQ(others, 0) << "with NaN as element " << at << " of input " << i << " element "
                           << first << " of result " << o << " is "
                           << got[o].element_as_double(first) << ", not "
                           << (*expected)[o].element_as_double(first);
    }
  }
}

}  // namespace collage::testing
