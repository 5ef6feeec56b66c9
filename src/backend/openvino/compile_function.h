// Compiles a function with OpenVINO's CPU plugin.
#pragma once

#include <memory>
#include <openvino/openvino.hpp>

#include "ir/expr.h"
#include "runtime/kernel.h"

namespace collage::openvino {

Result<std::unique_ptr<Kernel>> compile_function(const Function& function,
                                                 ov::element::Type precision, int threads);

}  // namespace collage::openvino
