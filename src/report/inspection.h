// What a model needs and what each backend could take of it, before anything is measured, for
// `collage inspect`. For a model that cannot be imported it holds the file's summary and every
// unsupported node.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "frontend/onnx/importer.h"

namespace collage {

struct Inspection {
  struct Work {
    size_t nodes = 0;
    double flops = 0;
  };
  struct Backend {
    std::string target;
    size_t candidates = 0;
    std::map<std::string, Work> operators;  // that it claims
    Work all;
  };
  struct Unsupported {
    std::string node, op, backend, reason;  // backend: "import" where no backend came to see it
  };

  std::string model;                     // the file's name
  std::optional<ModelSummary> file;      // what an ONNX file says
  std::vector<std::string> open;         // flags for open dimensions: "--dim n=1"
  std::vector<Unsupported> unsupported;  // every node that some backend does not take
  Status status;                         // why it cannot be imported; below nothing, then

  std::vector<TensorInfo> inputs, outputs;
  std::map<std::string, Work> operators;  // of the simplified graph, as far as they need a kernel
  Work all;
  std::vector<Backend> backends;  // but the host
  std::string host;
  std::map<std::string, Work> on_host;  // what no other backend claims
  double host_share = 0;                // of all arithmetic
};

// Open dimensions without a value in the options are taken as 1, and listed in `open`.
Result<Inspection> inspect_model(const std::filesystem::path& path, LoadOptions load,
                                 const ProgramOptions& options);

std::string to_text(const Inspection& inspection);
nlohmann::json to_json(const Inspection& inspection);

}  // namespace collage
