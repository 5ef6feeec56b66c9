// What a kernel may do that computes rightly and then lies: none may pass the checks.
#pragma once

#include <collage/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace collage::testing {

struct Lie {
  std::string name;
  // Changes the right result of float32; `run` counts from 0.
  std::function<void(Tensor& result, int run)> tell;
  // It needs a kernel's memory to be told: it writes beside its output, or leaves part of it as it
  // was.
  bool of_memory = false;
};

// Each but two, which depend on the function or its inputs: a tap that does not count
// (networks.h, faults_of), and results that are right on inputs known beforehand.
std::vector<Lie> all_lies();

}  // namespace collage::testing
