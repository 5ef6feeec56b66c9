#include "expectation.h"

#include <utility>

#include "rivals.h"

namespace collage::tool {

Result<Expected> Expectation::outputs(const SharedOptions& options, std::vector<TensorInfo> infos,
                                      std::vector<Tensor> inputs, size_t count) const {
  if (!folder.empty()) return Expected{folder, TRY(load_tensors("--expect", folder, count))};
  const FileInputs all = TRY(file_inputs(options.model, std::move(infos), std::move(inputs),
                                         TRY(load_options(options)).constants));
  RivalOutputs theirs =
      TRY(rival_outputs(runtime, options.model, all, count, thread_count(options)));
  return Expected{std::move(theirs.version), std::move(theirs.outputs)};
}

}  // namespace collage::tool
