// Programs compiled for several shapes, as files, which `compile --bucket` writes and `run` takes.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace collage::tool {

struct BucketFlags {
  std::vector<std::string> buckets;  // NAME=8,64
  std::vector<std::string> states;   // INPUT=OUTPUT, each perhaps with one *
};
void add_bucket_flags(CLI::App& command, BucketFlags& flags);

Status compile_specialised(const SharedOptions& options, const BucketFlags& flags,
                           const std::string& output, const std::string& signing_key);

// Returns whether the file is such an artifact; false if it cannot be read.
bool is_specialised(const SharedOptions& options);
// Times every specialisation; with --inputs runs the program on these.
Status run_specialised(const SharedOptions& options);

}  // namespace collage::tool
