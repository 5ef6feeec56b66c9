#include "report/saved_module.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend/targets/backends.h"
#include "base/integers.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "passes/widen_halves.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "tensor_program/module_programs.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kAlignment = 64;

json infos_json(const std::vector<TensorInfo>& infos) {
  json list = json::array();
  for (const TensorInfo& info : infos) {
    json entry = to_json(TensorType{info.shape, info.dtype});
    entry["name"] = info.name;
    list.push_back(std::move(entry));
  }
  return list;
}

Result<std::vector<TensorInfo>> infos_from(const JsonFields& fields, const char* name,
                                           const std::vector<TensorType>& types) {
  std::vector<TensorInfo> infos;
  for (const json& entry : *TRY(fields.array(name))) {
    const TensorType type = TRY(tensor_type_from(entry));
    if (infos.size() >= types.size() || !(types[infos.size()] == type))
      return bad_model("'{}' are not those of the module", name);
    infos.push_back({TRY(JsonFields(entry).text("name")), type.shape, type.dtype});
  }
  if (infos.size() != types.size()) return bad_model("'{}' are not those of the module", name);
  return infos;
}

// Constants of modules, one after the other; what two of them share is there once.
class Weights {
 public:
  size_t add(const Tensor& tensor) {
    const auto [known, fresh] = offsets_.emplace(std::pair(tensor.raw(), tensor.bytes()), bytes_);
    if (fresh) {
      tensors_.emplace_back(bytes_, tensor);
      bytes_ += round_up(tensor.bytes(), kAlignment);
    }
    return known->second;
  }

  Result<SharedBytes> block() const {
    std::shared_ptr<void> block = TRY(allocate_on_huge_pages(bytes_));
    for (const auto& [offset, tensor] : tensors_)
      if (tensor.bytes() > 0)
        std::memcpy(static_cast<char*>(block.get()) + offset, tensor.raw(), tensor.bytes());
    return SharedBytes{std::move(block), bytes_};
  }

 private:
  size_t bytes_ = 0;
  std::vector<std::pair<size_t, Tensor>> tensors_;  // by offset
  std::map<std::pair<const void*, size_t>, size_t> offsets_;
};

json module_json(const Module& module, Weights& weights) {
  std::vector<Tensor> tensors;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = kModuleWeightsEntry;
  options.side_tensors = &tensors;
  json value = {{"text", to_text(module, options)}, {"tensors", json::array()}};
  for (const Tensor& tensor : tensors) {
    json entry = to_json(TensorType{tensor.shape(), tensor.dtype()});
    entry["offset"] = weights.add(tensor);
    value["tensors"].push_back(std::move(entry));
  }
  return value;
}

Result<Module> module_from(const json& value, const SharedBytes& weights) {
  const JsonFields fields(value);
  std::vector<Tensor> tensors;
  for (const json& entry : *TRY(fields.array("tensors"))) {
    const TensorType type = TRY(tensor_type_from(entry));
    const auto offset =
        static_cast<size_t>(TRY(JsonFields(entry).integer("offset", 0, most_bytes())));
    if (offset % kAlignment != 0 || offset > weights.bytes || type.bytes() > weights.bytes - offset)
      return bad_model("a constant {} lies outside the weights", type.to_string());
    auto owner = std::const_pointer_cast<void>(weights.data);
    tensors.push_back(
        Tensor::share(type.dtype, type.shape, owner, static_cast<char*>(owner.get()) + offset));
  }
  ParseOptions options;
  options.side_tensors = &tensors;
  options.abstract_function = tensor_program::abstract_function;
  Module module = TRY(parse_module(TRY(fields.text("text")), options));
  if (module.functions.count("main") == 0) return bad_model("there is no function @main");
  for (const Expr& param : module.main()->params)
    if (!param->type().is_tensor()) return bad_model("an input that is no tensor");
  return module;
}

std::vector<TensorType> input_types(const Module& module) {
  std::vector<TensorType> types;
  for (const Expr& param : module.main()->params) types.push_back(param->tensor_type());
  return types;
}

std::vector<TensorType> output_types(const Module& module) {
  return module.main()->result_type().leaves();
}

Result<Model> read_model(ArtifactFile& file, EmbeddedWeights wanted) {
  const bool is_read = wanted == EmbeddedWeights::kRead;
  const SharedBytes text = TRY(file.entry(kModuleEntry));
  const SharedBytes weights =
      TRY(is_read ? file.entry(kModuleWeightsEntry) : file.unread_entry(kModuleWeightsEntry));
  const json description = parse_json(text.text());
  const JsonFields fields(description);
  auto impl = std::make_shared<internal::ModelImpl>();
  impl->path = file.manifest().model;
  impl->module = TRY(module_from(*TRY(fields.object("module")), weights));
  const std::vector<TensorType> inputs = input_types(impl->module),
                                outputs = output_types(impl->module);
  impl->inputs = TRY(infos_from(fields, "inputs", inputs));
  impl->outputs = TRY(infos_from(fields, "outputs", outputs));
  if (is_read && fields.has("in_halves")) {
    Module own = TRY(module_from(*TRY(fields.object("in_halves")), weights));
    if (!coarsest_half(own) || input_types(own) != inputs || output_types(own) != outputs)
      return bad_model("the model in half precision is another one");
    impl->in_halves = std::move(own);
  }
  return Model(std::move(impl));
}

}  // namespace

Result<std::vector<ZipEntry>> module_entries(const Model& model) {
  const internal::ModelImpl& impl = model.impl();
  Weights weights;
  json description = {{"module", module_json(impl.module, weights)},
                      {"inputs", infos_json(impl.inputs)},
                      {"outputs", infos_json(impl.outputs)}};
  if (impl.in_halves) description["in_halves"] = module_json(*impl.in_halves, weights);
  auto text = std::make_shared<const std::string>(json_text(description));
  SharedBytes block = TRY(weights.block());
  return std::vector<ZipEntry>{{kModuleEntry, {{text, text->data()}, text->size()}},
                               {kModuleWeightsEntry, std::move(block)}};
}

Result<Model> embedded_model(ArtifactFile& file, EmbeddedWeights wanted) {
  register_all();
  return or_bad_model(read_model(file, wanted));
}

}  // namespace collage
