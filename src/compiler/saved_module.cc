#include "compiler/saved_module.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/integers.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "targets/backends.h"
#include "tensor_program/call.h"

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

Result<Model> read_model(ArtifactFile& file, EmbeddedWeights wanted) {
  const SharedBytes text = TRY(file.entry(kModuleEntry));
  const SharedBytes weights =
      TRY(wanted == EmbeddedWeights::kRead ? file.entry(kModuleWeightsEntry)
                                           : file.unread_entry(kModuleWeightsEntry));
  const json description = parse_json(text.text());
  const JsonFields fields(description);
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
  auto impl = std::make_shared<internal::ModelImpl>();
  impl->path = file.manifest().model;
  impl->module = TRY(parse_module(TRY(fields.text("text")), options));
  if (impl->module.functions.count("main") == 0) return bad_model("there is no function @main");
  const Function& main = impl->module.main();
  std::vector<TensorType> inputs;
  for (const Expr& param : main->params) {
    if (!param->type().is_tensor()) return bad_model("an input that is no tensor");
    inputs.push_back(param->tensor_type());
  }
  impl->inputs = TRY(infos_from(fields, "inputs", inputs));
  impl->outputs = TRY(infos_from(fields, "outputs", main->result_type().leaves()));
  return Model(std::move(impl));
}

}  // namespace

Result<std::vector<ZipEntry>> module_entries(const Model& model) {
  const internal::ModelImpl& impl = model.impl();
  std::vector<Tensor> tensors;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = kModuleWeightsEntry;
  options.side_tensors = &tensors;
  json description = {{"text", to_text(impl.module, options)},
                      {"inputs", infos_json(impl.inputs)},
                      {"outputs", infos_json(impl.outputs)},
                      {"tensors", json::array()}};
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    json entry = to_json(TensorType{tensor.shape(), tensor.dtype()});
    entry["offset"] = bytes;
    description["tensors"].push_back(std::move(entry));
    bytes += round_up(tensor.bytes(), kAlignment);
  }
  std::shared_ptr<void> block = TRY(allocate_on_huge_pages(bytes));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].bytes() > 0)
      std::memcpy(
          static_cast<char*>(block.get()) + description["tensors"][i]["offset"].get<size_t>(),
          tensors[i].raw(), tensors[i].bytes());
  auto text = std::make_shared<const std::string>(json_text(description));
  return std::vector<ZipEntry>{{kModuleEntry, {{text, text->data()}, text->size()}},
                               {kModuleWeightsEntry, {std::move(block), bytes}}};
}

Result<Model> embedded_model(ArtifactFile& file, EmbeddedWeights wanted) {
  register_all();
  return or_bad_model(read_model(file, wanted));
}

}  // namespace collage
