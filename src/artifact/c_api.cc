// The C interface (collage/runtime.h) over the C++ one.
#include <dlpack/dlpack.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "artifact/dlpack_tensors.h"
#include "artifact/open_program.h"
#include "base/no_exceptions.h"
#include "collage/runtime.h"
#include "runtime/dlpack_type.h"

namespace collage {

// Dimensions that may have any size are kOpen.
struct TensorDescription {
  std::string name;
  Shape shape;
  DType dtype;
  bool has_shape = true;  // false: any rank
};

}  // namespace collage

struct collage_program {
  std::variant<collage::Artifact, collage::DynamicArtifact> artifact;
  std::vector<collage::TensorDescription> inputs, outputs;
};

struct collage_context {
  std::vector<collage::TensorDescription> inputs, outputs;
  std::variant<collage::Context, collage::DynamicContext> context;
};

namespace collage {
namespace {

constexpr int64_t kOpen = -1;  // a dimension of any size

thread_local std::string last_error;

template <typename Body>
int answer(const Body& body) {
  const Status status = without_exceptions([&]() -> Status { return body(); });
  last_error = status.ok() ? "" : status.to_string();
  return status.exit_code();
}

Status missing(const char* what) { return usage_error("{} is null", what); }

Status describe(const std::vector<TensorDescription>& infos, size_t index,
                collage_tensor_info* info) {
  if (info == nullptr) return missing("info");
  if (index >= infos.size()) return usage_error("there are {}, none is {}", infos.size(), index);
  const TensorDescription& known = infos[index];
  const DLDataType type = dl_data_type(known.dtype);
  const auto rank = static_cast<int32_t>(known.shape.size());
  *info = {known.name.c_str(), known.shape.data(), known.has_shape ? rank : -1, type.code,
           type.bits};
  return {};
}

TensorDescription description_of(const TensorInfo& info) {
  return {info.name, info.shape, info.dtype};
}

TensorDescription description_of(const DynamicTensorInfo& info) {
  TensorDescription made{info.name, {}, info.dtype, info.has_shape};
  for (const std::string& dim : info.dims) {
    int64_t size = kOpen;
    const auto [end, failure] = std::from_chars(dim.data(), dim.data() + dim.size(), size);
    made.shape.push_back(failure == std::errc() && end == dim.data() + dim.size() ? size : kOpen);
  }
  return made;
}

template <typename Infos>
std::vector<TensorDescription> descriptions_of(const Infos& infos) {
  std::vector<TensorDescription> result;
  for (const auto& info : infos) result.push_back(description_of(info));
  return result;
}

Result<collage_program*> program_of(Result<std::shared_ptr<ArtifactFile>> opened) {
  std::shared_ptr<ArtifactFile> file = TRY(std::move(opened));
  const bool several = file->manifest().has_specialisations();
  using Any = decltype(collage_program::artifact);
  Any any = several ? Any(TRY(open_dynamic_artifact(std::move(file))))
                    : Any(TRY(open_artifact(std::move(file))));
  auto made = std::make_unique<collage_program>(collage_program{std::move(any), {}, {}});
  std::visit(
      [&](const auto& artifact) {
        made->inputs = descriptions_of(artifact.inputs());
        made->outputs = descriptions_of(artifact.outputs());
      },
      made->artifact);
  return made.release();
}

// `make` gives the program; none as `public_key`: whoever signed it, if anybody.
template <typename Make>
int load(const std::optional<std::string>& public_key, const Make& make,
         collage_program** program) {
  return answer([&]() -> Status {
    if (program == nullptr) return missing("program");
    *program = nullptr;
    std::optional<PublicKey> signer;
    if (public_key) signer = TRY(PublicKey::parse(*public_key));
    *program = TRY(make(signer));
    return {};
  });
}

int load_file(const char* path, const std::optional<std::string>& public_key,
              collage_program** program) {
  const auto make = [&](const std::optional<PublicKey>& signer) {
    return program_of(ArtifactFile::open(path, signer)).with_context(path);
  };
  return load(public_key, make, program);
}

int load_memory(const void* data, size_t bytes, const std::optional<std::string>& public_key,
                collage_program** program) {
  const auto make = [&](const std::optional<PublicKey>& signer) {
    return program_of(ArtifactFile::from_memory(data, bytes, nullptr, signer));
  };
  return load(public_key, make, program);
}

// What a tensor must be: where the description leaves it open, as the tensor has it.
TensorType type_of(const TensorDescription& wanted, const DLTensor& given) {
  TensorType type{wanted.shape, wanted.dtype};
  if (given.shape == nullptr || given.ndim < 0) return type;
  if (!wanted.has_shape) type.shape.assign(given.shape, given.shape + given.ndim);
  if (given.ndim != static_cast<int>(type.shape.size())) return type;
  for (size_t d = 0; d < type.shape.size(); ++d)
    if (type.shape[d] == kOpen) type.shape[d] = given.shape[d];
  return type;
}

// What is copied, since it does not lie densely, is looked at where it lies.
Status check_apart(const collage_context& context, DLManagedTensor* const* inputs,
                   DLManagedTensor* const* outputs) {
  std::vector<TensorMemory> ins, outs;
  for (size_t i = 0; i < context.inputs.size(); ++i) ins.push_back(memory_of(inputs[i]->dl_tensor));
  for (size_t i = 0; i < context.outputs.size(); ++i)
    outs.push_back(outputs[i] == nullptr ? TensorMemory() : memory_of(outputs[i]->dl_tensor));
  return check_outputs_apart(
      ins, outs, [&](size_t i) { return context.inputs[i].name; },
      [&](size_t i) { return context.outputs[i].name; });
}

Status run(collage_context& context, DLManagedTensor* const* inputs, size_t num_inputs,
           DLManagedTensor** outputs, size_t num_outputs) {
  const std::vector<TensorDescription>&ins = context.inputs, &outs = context.outputs;
  if (num_inputs != ins.size() || num_outputs != outs.size())
    return bad_model("the program takes {} inputs and gives {} outputs, not {} and {}", ins.size(),
                     outs.size(), num_inputs, num_outputs);
  std::vector<Tensor> given, results(outs.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    if (inputs[i] == nullptr) return missing("an input");
    const DLTensor& input = inputs[i]->dl_tensor;
    given.push_back(
        TRY(borrow_dlpack(input, type_of(ins[i], input), "input '" + ins[i].name + "'")));
  }
  std::vector<bool> is_copied(outs.size(), false);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    const DLTensor& wanted = outputs[i]->dl_tensor;
    results[i] =
        TRY(borrow_dlpack(wanted, type_of(outs[i], wanted), "output '" + outs[i].name + "'"));
    is_copied[i] = results[i].raw() != static_cast<char*>(wanted.data) + wanted.byte_offset;
  }
  TRY(check_apart(context, inputs, outputs));
  if (auto* fixed = std::get_if<Context>(&context.context)) {
    TRY(fixed->run(given, results));
  } else {
    const std::vector<Tensor> made = TRY(std::get<DynamicContext>(context.context).run(given));
    for (size_t i = 0; i < outs.size(); ++i) {
      if (outputs[i] != nullptr && results[i].shape() != made[i].shape())
        return bad_model("output '{}': expected {}, got {}", outs[i].name,
                         shape_to_string(made[i].shape()), shape_to_string(results[i].shape()));
      results[i] = made[i];
      is_copied[i] = true;
    }
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outputs[i] == nullptr)
      outputs[i] = results[i].to_dlpack();
    else if (is_copied[i])
      copy_to_dlpack(results[i], outputs[i]->dl_tensor);
  }
  return {};
}

}  // namespace
}  // namespace collage

extern "C" {

int collage_runtime_abi(void) { return COLLAGE_RUNTIME_ABI; }

const char* collage_last_error(void) { return collage::last_error.c_str(); }

int collage_program_load(const char* path, collage_program** program) {
  if (path == nullptr) return collage::answer([] { return collage::missing("path"); });
  return collage::load_file(path, {}, program);
}

int collage_program_load_memory(const void* data, size_t bytes, collage_program** program) {
  if (data == nullptr) return collage::answer([] { return collage::missing("data"); });
  return collage::load_memory(data, bytes, {}, program);
}

int collage_program_load_signed(const char* path, const char* public_key,
                                collage_program** program) {
  if (path == nullptr || public_key == nullptr)
    return collage::answer([] { return collage::missing("an argument"); });
  return collage::load_file(path, public_key, program);
}

int collage_program_load_memory_signed(const void* data, size_t bytes, const char* public_key,
                                       collage_program** program) {
  if (data == nullptr || public_key == nullptr)
    return collage::answer([] { return collage::missing("an argument"); });
  return collage::load_memory(data, bytes, public_key, program);
}

void collage_program_free(collage_program* program) { delete program; }

size_t collage_program_num_inputs(const collage_program* program) {
  return program != nullptr ? program->inputs.size() : 0;
}

size_t collage_program_num_outputs(const collage_program* program) {
  return program != nullptr ? program->outputs.size() : 0;
}

int collage_program_input(const collage_program* program, size_t index, collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->inputs, index, info);
  });
}

int collage_program_output(const collage_program* program, size_t index,
                           collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->outputs, index, info);
  });
}

int collage_context_create(const collage_program* program, collage_context** context) {
  return collage::answer([&]() -> collage::Status {
    if (program == nullptr || context == nullptr) return collage::missing("an argument");
    *context = nullptr;
    return std::visit(
        [&](const auto& artifact) -> collage::Status {
          *context =
              new collage_context{program->inputs, program->outputs, TRY(artifact.make_context())};
          return {};
        },
        program->artifact);
  });
}

void collage_context_reset(collage_context* context) {
  if (context == nullptr) return;
  if (auto* dynamic = std::get_if<collage::DynamicContext>(&context->context)) dynamic->reset();
}

void collage_context_free(collage_context* context) { delete context; }

int collage_context_run(collage_context* context, struct DLManagedTensor* const* inputs,
                        size_t num_inputs, struct DLManagedTensor** outputs, size_t num_outputs) {
  return collage::answer([&]() -> collage::Status {
    if (context == nullptr || (inputs == nullptr && num_inputs > 0) ||
        (outputs == nullptr && num_outputs > 0))
      return collage::missing("an argument");
    return collage::run(*context, inputs, num_inputs, outputs, num_outputs);
  });
}

}  // extern "C"
