// Runs functions through the backend and compares with the interpreter.
#pragma once

#include <collage/tensor.h>

#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace collage::test {

Backend& openvino_backend();

// Compiles with the backend's first variant and runs once, inside a parked team. Fails also where a
// twin, or the kernel saved and loaded, gives other bits.
Result<std::vector<Tensor>> run_openvino(const Function& function, std::span<const Tensor> inputs);

// "" when equal: floats within 2e-5 of the largest plus 1e-5 of each (NaN equals NaN), integers of
// 8 bits but for neighbours in few places, all else exactly.
std::string difference(const Tensor& actual, const Tensor& expected);

}  // namespace collage::test
