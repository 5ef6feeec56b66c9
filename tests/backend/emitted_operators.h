// What backends that compile tensor programs take of the operators.
#pragma once

#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace collage::testing {

// Operators of which no case is a tensor program with a kernel.
inline std::set<std::string> operators_not_emitted() {
  std::istringstream names(
      "acos acosh all any asin asinh atan atanh bitwise_and bitwise_not "
      "bitwise_or bitwise_xor cumsum floor_mod isinf isnan "
      "left_shift logical_xor mod nn.batch_norm nn.conv1d_transpose "
      "nn.conv2d_transpose nn.conv3d_transpose "
      "match_size nonzero one_hot reverse_sequence right_shift shape_of unique "
      "tan topk random.normal random.run "
      "random.uniform reinterpret vision.non_max_suppression vision.roi_align nn.rnn nn.gru "
      "nn.lstm "
      "nn.deformable_conv");
  return std::set<std::string>(std::istream_iterator<std::string>(names), {});
}

}  // namespace collage::testing
