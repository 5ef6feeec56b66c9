// The C interface (collage/runtime.h) over the C++ one.
#include <dlpack/dlpack.h>

#include <algorithm>
#include <string>
#include <vector>

#include "artifact/artifact_file.h"
#include "artifact/dlpack_tensors.h"
#include "artifact/program_impl.h"
#include "base/no_exceptions.h"
#include "collage/program.h"
#include "collage/runtime.h"
#include "runtime/dlpack_type.h"
#include "runtime/memory_overlap.h"

struct collage_program {
  collage::Program program;
};

struct collage_context {
  collage::Program program;
  collage::Context context;
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

Status describe(const std::vector<TensorInfo>& infos, size_t index, collage_tensor_info* info) {
  if (info == nullptr) return missing("info");
  if (index >= infos.size()) return usage_error("there are {}, none is {}", infos.size(), index);
  const TensorInfo& known = infos[index];
  const DLDataType type = dl_data_type(known.dtype);
  const auto rank = static_cast<int32_t>(known.shape.size());
  *info = {known.name.c_str(), known.shape.data(), known.has_shape ? rank : -1, type.code,
           type.bits};
  return {};
}

// `load` gives the program.
template <typename Load>
int load_program(collage_program** program, const Load& load) {
  return answer([&]() -> Status {
    if (program == nullptr) return missing("program");
    *program = nullptr;
    *program = new collage_program{TRY(load())};
    return {};
  });
}

// What a tensor must be: where the description leaves it open, as the tensor has it.
TensorType type_of(const TensorInfo& wanted, const DLTensor& given) {
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
  const std::vector<TensorInfo>&given = context.program.inputs(), &made = context.program.outputs();
  for (size_t i = 0; i < given.size(); ++i) ins.push_back(memory_of(inputs[i]->dl_tensor));
  for (size_t i = 0; i < made.size(); ++i)
    outs.push_back(outputs[i] == nullptr ? TensorMemory() : memory_of(outputs[i]->dl_tensor));
  return check_outputs_apart(
      ins, outs, [&](size_t i) { return given[i].name; }, [&](size_t i) { return made[i].name; });
}

Status run(collage_context& context, DLManagedTensor* const* inputs, size_t num_inputs,
           DLManagedTensor** outputs, size_t num_outputs) {
  const std::vector<TensorInfo>&ins = context.program.inputs(), &outs = context.program.outputs();
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
  TRY(context.context.run(given, results));
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outputs[i] == nullptr)
      outputs[i] = results[i].to_dlpack();
    else if (is_copied[i])
      copy_to_dlpack(results[i], outputs[i]->dl_tensor);
  }
  return {};
}

Status run_dense(collage_context& context, const void* const* inputs, void* const* outputs) {
  const auto borrow = [](const TensorInfo& info, const void* data) -> Result<Tensor> {
    if (!info.has_shape || std::count(info.shape.begin(), info.shape.end(), kOpen) > 0)
      return usage_error("'{}' has no fixed shape", info.name);
    if (data == nullptr && num_elements(info.shape) > 0)
      return bad_model("'{}' is null", info.name);
    return Tensor::borrow(info.dtype, info.shape, const_cast<void*>(data));
  };
  std::vector<Tensor> given, results;
  for (const TensorInfo& info : context.program.inputs())
    given.push_back(TRY(borrow(info, inputs[given.size()])));
  for (const TensorInfo& info : context.program.outputs())
    results.push_back(TRY(borrow(info, outputs[results.size()])));
  return context.context.run(given, results);
}

}  // namespace
}  // namespace collage

extern "C" {

int collage_runtime_abi(void) { return COLLAGE_RUNTIME_ABI; }

const char* collage_last_error(void) { return collage::last_error.c_str(); }

int collage_program_load(const char* path, collage_program** program) {
  if (path == nullptr) return collage::answer([] { return collage::missing("path"); });
  return collage::load_program(program, [&] { return collage::Program::load(path); });
}

int collage_program_load_memory(const void* data, size_t bytes, collage_program** program) {
  if (data == nullptr) return collage::answer([] { return collage::missing("data"); });
  return collage::load_program(program, [&] { return collage::Program::load(data, bytes); });
}

int collage_program_load_signed(const char* path, const char* public_key,
                                collage_program** program) {
  if (path == nullptr || public_key == nullptr)
    return collage::answer([] { return collage::missing("an argument"); });
  return collage::load_program(program,
                               [&] { return collage::Program::load_signed(path, public_key); });
}

int collage_program_load_memory_signed(const void* data, size_t bytes, const char* public_key,
                                       collage_program** program) {
  if (data == nullptr || public_key == nullptr)
    return collage::answer([] { return collage::missing("an argument"); });
  return collage::load_program(
      program, [&] { return collage::Program::load_signed(data, bytes, public_key); });
}

int collage_program_load_static(const void* data, size_t bytes, int threads,
                                collage_program** program) {
  if (data == nullptr) return collage::answer([] { return collage::missing("data"); });
  if (threads < 0 || threads > collage::WorkerTeam::kMostThreads)
    return collage::answer([&] { return collage::usage_error("{} threads", threads); });
  const std::shared_ptr<const void> owner(data, [](const void*) {});
  return collage::load_program(program, [&] {
    return collage::open_program(collage::ArtifactFile::from_memory(data, bytes, owner), threads);
  });
}

void collage_program_free(collage_program* program) { delete program; }

size_t collage_program_num_inputs(const collage_program* program) {
  return program != nullptr ? program->program.inputs().size() : 0;
}

size_t collage_program_num_outputs(const collage_program* program) {
  return program != nullptr ? program->program.outputs().size() : 0;
}

int collage_program_input(const collage_program* program, size_t index, collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->program.inputs(), index, info);
  });
}

int collage_program_output(const collage_program* program, size_t index,
                           collage_tensor_info* info) {
  return collage::answer([&] {
    return program == nullptr ? collage::missing("program")
                              : collage::describe(program->program.outputs(), index, info);
  });
}

int collage_context_create(const collage_program* program, collage_context** context) {
  return collage::answer([&]() -> collage::Status {
    if (program == nullptr || context == nullptr) return collage::missing("an argument");
    *context = nullptr;
    *context = new collage_context{program->program, TRY(program->program.make_context())};
    return {};
  });
}

void collage_context_reset(collage_context* context) {
  if (context != nullptr) context->context.reset();
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

int collage_context_run_dense(collage_context* context, const void* const* inputs,
                              void* const* outputs) {
  return collage::answer([&]() -> collage::Status {
    if (context == nullptr || inputs == nullptr || outputs == nullptr)
      return collage::missing("an argument");
    return collage::run_dense(*context, inputs, outputs);
  });
}

}  // extern "C"
