// Pipeline: runs passes in order. After a pass that changed the module it verifies the module; an
// error names the pass. Each pass is timed.
//
//   COLLAGE_DUMP=dir[:regex]        writes the module before the first pass and after every pass
//                                   whose name matches, as dir/NN_name.relay; dumps parse back
//   COLLAGE_DISABLE_PASS=name,name  leaves passes out
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"

namespace collage {

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes, besides COLLAGE_DISABLE_PASS
  std::string dump;                   // as COLLAGE_DUMP, which it overrides
};

struct PassRecord {
  std::string name;
  double seconds = 0;
  bool changed = false;
  bool disabled = false;
};

class Pipeline {
 public:
  explicit Pipeline(std::vector<Pass> passes) : passes_(std::move(passes)) {}
  const std::vector<Pass>& passes() const { return passes_; }
  // Returns one record a pass, in order. The module is unchanged if a pass fails. kUsage: a
  // disabled name is no pass of this pipeline.
  Result<std::vector<PassRecord>> run(Module& module, const PipelineOptions& options = {}) const;

 private:
  std::vector<Pass> passes_;
};

}  // namespace collage
