// Runs every variant that opencl offers for a function, on its first device, and compares with the
// interpreter. Kernels take and give tensors of the host: measure/staged_kernel.h copies them.
#pragma once

#include <gtest/gtest.h>

#include "backend/check.h"

// Ends the test where there is no device.
#define REQUIRE_DEVICE()                                                \
  if (const Status status = staged_backend().available(); !status.ok()) \
  GTEST_SKIP() << status.message()

namespace collage::opencl {

const Backend& staged_backend();
/// The same, whose kernels are the device's own.
const Backend& device_backend();
Target first_device();

void check_with_inputs(const Function& function, const std::vector<Tensor>& inputs,
                       const testing::Tolerance& tolerance = {});
void check_function(const Function& function, const testing::Tolerance& tolerance = {});

}  // namespace collage::opencl
