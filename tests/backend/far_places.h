// GridSample at places that lie far outside of the image, are infinite, or are no numbers.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/check.h"

namespace collage::testing {

struct FarPlaces {
  std::string name;  // "linear, border"
  Function function;
  std::vector<Tensor> inputs;
};

inline std::vector<FarPlaces> far_places() {
  std::vector<FarPlaces> list;
  const Shape image = {1, 2, 5, 7}, places = {1, 4, 10, 2};
  for (const std::string method : {"nearest", "linear", "cubic"})
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      std::vector<float> far = {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF};
      // What is left of such a number after reflection is lost in rounding.
      if (padding != "reflection") far.insert(far.end(), {3e38f, -3e38f, 1e9f, -1e9f});
      Tensor grid = random_tensor(places, 5);
      for (size_t i = 0; i < static_cast<size_t>(grid.size()) / 3; ++i)
        grid.data<float>()[3 * i] = far[i % far.size()];
      Graph graph;
      const Expr x = graph.input(image), at = graph.input(places);
      const Expr read = graph.call(
          "image.grid_sample", {x, at},
          {{"method", method}, {"padding_mode", padding}, {"align_corners", method == "linear"}});
      list.push_back({method + ", " + padding,
                      graph.function(read),
                      {random_tensor(image, 3), std::move(grid)}});
    }
  return list;
}

}  // namespace collage::testing
