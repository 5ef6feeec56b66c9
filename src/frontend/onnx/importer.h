// Imports an ONNX model into a Module with one graph function, "main": its parameters are the
// model's inputs, its result the output (a tuple when there are several), every shape static.
//
//   ImportOptions options;
//   options.dims["batch"] = 8;
//   ImportedModel model = TRY(import_onnx("model.onnx", options));
//
// Operator sets 6 to 28. Weights become constants, functions of the model are inlined, shape
// arithmetic is evaluated. A model is untrusted input: any file gives a model or an error of one
// line, "FILE: node 'NAME' (OpType): what is wrong", with code kBadModel, kUnsupported, or kUsage
// when the options name something that the model does not have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"

namespace collage {

struct ImportOptions {
  std::map<std::string, Shape> shapes;      // whole shapes by input name; they win over `dims`
  std::map<std::string, int64_t> dims;      // values of named dynamic dimensions
  std::map<std::string, Tensor> constants;  // inputs fixed to a value; they are no parameters
  uint64_t max_bytes = 0;                   // of weights; 0: 80% of this machine's memory
  std::vector<std::filesystem::path> data_roots;  // folders that links of external data may lead to
};

struct ImportedModel {
  Module module;
  std::vector<std::string> input_names;   // of main's parameters
  std::vector<std::string> output_names;  // of main's results
  int64_t opset = 0;                      // of the standard operators
  int64_t ir_version = 0;
  std::string producer;
  uint64_t weight_bytes = 0;            // of the initializers in use
  size_t node_count = 0;                // ONNX nodes imported, functions inlined
  std::map<std::string, int64_t> dims;  // named dimensions and the values they got
};

// A node that cannot be imported, and why.
struct UnsupportedNode {
  std::string node;  // its name, or the operator and its position
  std::string op;    // "Loop", "com.microsoft::FusedConv"
  std::string reason;
  bool dynamic = false;  // a model that is imported in stages, as it runs, may have it (stages.h)
};

// On kUnsupported `unsupported`, if given, receives every node that was refused, not only those the
// message has room for.
Result<ImportedModel> import_onnx(const std::filesystem::path& file,
                                  const ImportOptions& options = {},
                                  std::vector<UnsupportedNode>* unsupported = nullptr);

// The interface of a model, read without its weights.
struct ModelInput {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::string> dims;  // "3", "batch", or "?" for one without a name
  bool has_shape = true;          // false: the rank is unknown too, and dims is empty
};
// Returns whether a dimension of a ModelInput needs a value, either by its name or as a part of a
// shape.
bool is_open_dimension(const std::string& dim);
bool is_named_dimension(const std::string& dim);
struct ModelSummary {
  int64_t opset = 0;
  int64_t ir_version = 0;
  std::string producer;
  std::vector<ModelInput> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, size_t> op_counts;  // by operator, functions not inlined
};
Result<ModelSummary> inspect_onnx(const std::filesystem::path& file);

}  // namespace collage
