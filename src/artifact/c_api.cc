// The C interface (collage/runtime.h) over the C++ one.
#include <dlpack/dlpack.h>

#include <string>

#include "artifact/dlpack_tensors.h"
#include "base/no_exceptions.h"
#include "collage/artifact.h"
#include "collage/runtime.h"
#include "runtime/dlpack_type.h"

struct collage_program {
  collage::Artifact artifact;
};

struct collage_context {
  collage::Artifact artifact;
  collage::Context context;
};

namespace collage {
namespace {

thread_local std::string last_error;

template <typename Body>
int answer(const Body& body) {
  const Status status = without_exceptions([&]() -> Status { return body(); });
  last_error = status.ok() ? "" : status.to_string();
  return status.exit_code();
}

Status missing(const char* what) { return usage_error("{} is null", what); }

Status describe(const std::vector<TensorInfo>& infos, size_t index, collage_tensor_info* info) {
  if (info == nullptr) return missing("info");
  if (index >= infos.size()) return usage_error("there are {}, none is {}", infos.size(), index);
  const TensorInfo& known = infos[index];
  const DLDataType type = dl_data_type(known.dtype);
  *info = {known.name.c_str(), known.shape.data(), static_cast<int32_t>(known.shape.size()),
           type.code, type.bits};
  return {};
}

int load(Result<Artifact> artifact, collage_program** program) {
  return answer([&]() -> Status {
    if (program == nullptr) return missing("program");
    *program = nullptr;
    Artifact loaded = TRY(std::move(artifact));
    *program = new collage_program{std::move(loaded)};
    return {};
  });
}

TensorType type_of(const TensorInfo& info) { return {info.shape, info.dtype}; }

Status run(collage_context& context, DLManagedTensor* const* inputs, size_t num_inputs,
           DLManagedTensor** outputs, size_t num_outputs) {
  const std::vector<TensorInfo>&ins = context.artifact.inputs(), &outs = context.artifact.outputs();
  if (num_inputs != ins.size() || num_outputs != outs.size())
    return bad_model("the program takes {} inputs and gives {} outputs, not {} and {}", ins.size(),
                     outs.size(), num_inputs, num_outputs);
  std::vector<Tensor> given, results(outs.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    if (inputs[i] == nullptr) return missing("an input");
    given.push_back(
        TRY(borrow_dlpack(inputs[i]->dl_tensor, type_of(ins[i]), "input '" + ins[i].name + "'")));
  }
  std::vector<bool> is_copied(outs.size(), false);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    const DLTensor& wanted = outputs[i]->dl_tensor;
    results[i] = TRY(borrow_dlpack(wanted, type_of(outs[i]), "output '" + outs[i].name + "'"));
    is_copied[i] = results[i].raw() != static_cast<char*>(wanted.data) + wanted.byte_offset;
  }
  TRY(context.context.run(given, results));
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
  return collage::load(collage::Artifact::load(std::filesystem::path(path)), program);
}

int collage_program_load_memory(const void* data, size_t bytes, collage_program** program) {
  if (data == nullptr) return collage::answer([] { return collage::missing("data"); });
  return collage::load(collage::Artifact::load(data, bytes), program);
}

void collage_program_free(collage_program* program) { delete program; }

size_t collage_program_num_inputs(const collage_program* program) {
  return program != nullptr ? program->artifact.inputs().size() : 0;
}

size_t collage_program_num_outputs(const collage_program* program) {
  return program != nullptr ? program->artifact.outputs().size() : 0;
}

int collage_program_input(const collage_program* program, size_t index, collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->artifact.inputs(), index, info);
  });
}

int collage_program_output(const collage_program* program, size_t index,
                           collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->artifact.outputs(), index, info);
  });
}

int collage_context_create(const collage_program* program, collage_context** context) {
  return collage::answer([&]() -> collage::Status {
    if (program == nullptr || context == nullptr) return collage::missing("an argument");
    *context = nullptr;
    collage::Context made = TRY(program->artifact.make_context());
    *context = new collage_context{program->artifact, std::move(made)};
    return {};
  });
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
