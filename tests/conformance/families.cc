#include "conformance/families.h"

#include <onnx/onnx-ml.pb.h>

#include <array>
#include <fstream>

namespace collage {

namespace {

enum Id { kSequences, kOptionals, kStrings, kMaps, kTraining, kMl, kCount };
constexpr std::array<Family, kCount> kFamilies = {{
    {"sequences", "lists of tensors whose number is known when the model runs"},
    {"optionals", "values that may be missing when the model runs"},
    {"strings", "text: tensors of strings and operators on them"},
    {"maps", "dictionaries, which only ai.onnx.ml uses"},
    {"training", "ai.onnx.preview.training: gradients and optimisers, not inference"},
    {"ai.onnx.ml", "classical machine learning: trees, scalers, encoders of labels"},
}};

// Operators whose results are of a type that a model need not tell.
constexpr std::array<std::pair<const char*, Id>, 18> kOperators = {{
    {"SequenceAt", kSequences},
    {"SequenceConstruct", kSequences},
    {"SequenceEmpty", kSequences},
    {"SequenceErase", kSequences},
    {"SequenceInsert", kSequences},
    {"SequenceLength", kSequences},
    {"SequenceMap", kSequences},
    {"SplitToSequence", kSequences},
    {"ConcatFromSequence", kSequences},
    {"Optional", kOptionals},
    {"OptionalGetElement", kOptionals},
    {"OptionalHasElement", kOptionals},
    {"StringConcat", kStrings},
    {"StringNormalizer", kStrings},
    {"StringSplit", kStrings},
    {"RegexFullMatch", kStrings},
    {"ZipMap", kMaps},
    {"DictVectorizer", kMaps},
}};

using ::onnx::TensorProto;
using ::onnx::TypeProto;

class Finder {
 public:
  std::optional<Id> found() const { return found_; }

  void model(const ::onnx::ModelProto& model) {
    graph(model.graph());
    for (const auto& function : model.functions())
      for (const auto& node : function.node()) this->node(node);
  }

 private:
  void is(Id id) {
    if (!found_) found_ = id;
  }

  void graph(const ::onnx::GraphProto& graph) {
    for (const auto* values : {&graph.input(), &graph.output(), &graph.value_info()})
      for (const auto& value : *values) type(value.type());
    for (const auto& tensor : graph.initializer()) this->tensor(tensor);
    for (const auto& node : graph.node()) this->node(node);
  }

  void type(const TypeProto& type) {
    if (type.has_sequence_type()) is(kSequences);
    if (type.has_optional_type()) is(kOptionals);
    if (type.has_map_type()) is(kMaps);
    if (type.has_tensor_type() && type.tensor_type().elem_type() == TensorProto::STRING)
      is(kStrings);
  }

  void tensor(const TensorProto& tensor) {
    if (tensor.data_type() == TensorProto::STRING) is(kStrings);
  }

  void node(const ::onnx::NodeProto& node) {
    if (node.domain() == "ai.onnx.preview.training") is(kTraining);
    if (node.domain() == "ai.onnx.ml") is(kMl);
    for (const auto& [name, id] : kOperators)
      if (node.op_type() == name) is(id);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) graph(attribute.g());
      for (const auto& inner : attribute.graphs()) graph(inner);
      if (attribute.has_t()) tensor(attribute.t());
    }
  }

  std::optional<Id> found_;
};

}  // namespace

std::span<const Family> excluded_families() { return kFamilies; }

Result<const Family*> excluded_family(const std::filesystem::path& model) {
  std::ifstream stream(model, std::ios::binary);
  ::onnx::ModelProto proto;
  if (!proto.ParseFromIstream(&stream)) return bad_model("{} is no model", model.string());
  Finder finder;
  finder.model(proto);
  return finder.found() ? &kFamilies[*finder.found()] : nullptr;
}

}  // namespace collage
