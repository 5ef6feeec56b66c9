// Every case of every operator that oneDNN takes, in every variant, against the interpreter.
#include <iterator>
#include <set>
#include <sstream>

#include "backend/check.h"
#include "backend/onednn/onednn_backend.h"
#include "backend/onednn/quantised.h"

namespace collage::testing {
namespace {

// Those of which it takes no case.
const std::set<std::string> kRefused = [] {
  std::istringstream names(
      "acos acosh all any argmax argmin asin asinh atan atanh bitwise_and bitwise_not "
      "bitwise_or bitwise_xor broadcast_to cast ceil copy cos cosh cumsum equal erf "
      "expand_dims floor floor_mod full gather gather_nd greater greater_equal isinf "
      "isnan left_shift less less_equal log logical_and logical_not logical_or logical_xor "
      "mod nn.batch_flatten nn.batch_norm nn.celu nn.depth_to_space nn.group_norm "
      "nn.instance_norm nn.l2_normalize nn.lrn nn.pad nn.prelu nn.rms_norm nn.selu "
      "nn.shrink nn.softplus nn.softsign nn.space_to_depth nn.thresholded_relu not_equal one_hot "
      "power repeat reshape reverse reverse_sequence right_shift rsqrt scatter_elements "
      "scatter_nd shape_of match_size nonzero unique vision.non_max_suppression sign sin sinh "
      "split squeeze stack take tan tile topk trilu trunc "
      "where qnn.quantize random.normal random.run random.uniform reinterpret vision.roi_align "
      "nn.rnn nn.gru nn.lstm image.grid_sample nn.deformable_conv nn.packed_dense");
  std::set<std::string> refused(std::istream_iterator<std::string>(names), {});
  return refused;
}();

class OneDnnOperators : public ::testing::TestWithParam<std::string> {};

TEST_P(OneDnnOperators, MatchTheReference) {
  static const std::unique_ptr<Backend> backend = make_onednn_backend();
  const Target target{"onednn", {}, {}};
  check_operator(*backend, target, GetParam(), kRefused,
                 [&](const Function& function, const std::vector<Tensor>& inputs) {
                   check_variants(*backend, target, function, inputs);
                 });
}

INSTANTIATE_TEST_SUITE_P(Operators, OneDnnOperators, ::testing::ValuesIn(operators_with_cases()),
                         test_name_of_operator);

}  // namespace
}  // namespace collage::testing
