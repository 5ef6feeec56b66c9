// A small report of docs/report-schema.json's form, to be changed by tests.
#pragma once

#include <nlohmann/json.hpp>

namespace collage::testing {

// Two kernels, a convolution with its activation on onednn and a softmax on native. No latencies.
nlohmann::json sample_report();

}  // namespace collage::testing
