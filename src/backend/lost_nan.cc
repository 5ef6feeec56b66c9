#include "backend/lost_nan.h"

namespace collage {

std::vector<std::string_view> losing_nan_in_onednn() {
  return {"nn.relu",
          "clip",
          "maximum",
          "minimum",
          "exp",
          "nn.hard_sigmoid",
          "nn.softmax",
          "nn.log_softmax",
          "nn.attention",
          "max",
          "min",
          "nn.max_pool1d",
          "nn.max_pool2d",
          "nn.max_pool3d",
          "nn.global_max_pool1d",
          "nn.global_max_pool2d",
          "nn.global_max_pool3d"};
}

}  // namespace collage
