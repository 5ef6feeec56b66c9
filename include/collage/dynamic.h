// Models whose shapes are not known before they run: dimensions that inputs decide (batch,
// sequence), tensors whose shapes depend on values (NonZero, NonMaxSuppression), and control flow.
//
//   collage::DynamicOptions options;
//   options.buckets["past"] = {128, 512, 960};
//   auto program = collage::Program::compile("decoder.onnx", options);
//   auto outputs = program->run({tokens, mask, past_keys, past_values});
//
// The program is compiled for the shapes that come, once for each (a specialisation), and keeps
// them; all share one set of weights. Where shapes depend on values the model is cut: each part is
// compiled once the tensors before it exist.
#pragma once

#include <collage/collage.h>
#include <collage/result.h>
#include <collage/tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace collage {

// An operator that Collage does not have, computed by whoever gave it.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, Tensor>;
struct ForeignCall {
  std::string node;  // its name, for messages
  const std::map<std::string, Attribute>& attributes;
  const std::vector<Tensor>& inputs;  // undefined for one that is absent
  size_t outputs = 1;                 // how many are wanted
};
// Must not keep or write the inputs. Called from the thread that runs the program.
using ForeignOperator = std::function<Result<std::vector<Tensor>>(const ForeignCall& call)>;

struct DynamicOptions {
  ProgramOptions program;
  // kUnavailable for shapes that were not prepared, instead of compiling for them.
  bool compile_on_demand = true;
  // Sizes to compile for, by named dimension: a tensor is padded at the end of that dimension to
  // the smallest that holds it, and results are cut back. A dimension of two parts, "past +
  // sequence", is padded at the end of each part. Only for models whose results do not depend on
  // what padding holds, by a mask for example; that is tried when the model is loaded
  // (kVerification otherwise).
  std::map<std::string, std::vector<int64_t>> buckets;
  std::map<std::string, double> padding;  // what an input is padded with; 0 where it is not named
  // Inputs whose values the program keeps from run to run: the output that gives the next one's, by
  // the input's name (present.0.key by past.0.key). Such an input has a dimension that buckets
  // name, its output the same dimension with further parts after it; each run appends those to what
  // is kept, in place. States are no inputs and outputs of `run` any more.
  std::map<std::string, std::string> states;
  std::map<std::string, Tensor> constants;        // inputs fixed to a value
  std::vector<std::filesystem::path> data_roots;  // as in LoadOptions
  // Of a file that `save` wrote: the signer's public key (Ed25519, PEM); a file that it did not
  // sign is refused (kBadModel). Empty: any is taken.
  std::string public_key;
  // Operators by domain and name, "my.domain::Smooth". They stand before what Collage has of that
  // name.
  std::map<std::string, ForeignOperator> operators;
};

}  // namespace collage
