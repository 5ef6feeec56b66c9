// Results in the form that Google Benchmark writes, for the tools that read it: JSON, or CSV where
// the file's name ends so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::tool {

struct BenchmarkRow {
  std::string name;             // "resnet50/collage/batch:8"
  std::vector<double> seconds;  // of single inferences; empty: only the rate is known
  int threads = 1;
  double items_per_second = 0;
  size_t peak_bytes = 0;  // 0: unknown
};

// "" is no file.
Status write_benchmark_file(const std::string& path, const std::vector<BenchmarkRow>& rows);

}  // namespace collage::tool
