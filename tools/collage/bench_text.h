// Text of the results of `bench`.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace collage::tool {

std::string statistics_line(const std::string& name, const std::vector<double>& seconds);
std::string throughput_lines(const RunFacts::Throughput& throughput);
// The arena, and the most memory that the process held while it was timed.
std::string memory_line(size_t arena_bytes, size_t resident_bytes);

}  // namespace collage::tool
