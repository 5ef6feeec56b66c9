#include "artifact/library/library_source.h"

#include <map>

#include "artifact/library/library_header.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/printable.h"
#include "base/processor.h"
#include "runtime/dlpack_type.h"

namespace collage {

// By name, empty where there is none (cmake/embed.cmake).
std::string_view library_file(std::string_view name);

namespace {

// Code, tables and constants refer to one another by offsets of 32 bits.
constexpr size_t kMostConstantBytes = size_t{2'000'000'000};

class Writing {
 public:
  Writing(const Plan& plan, const LibraryFacts& facts) : plan_(plan), facts_(facts) {}

  Result<LibrarySource> run() {
    for (const Step& step : plan_.steps) TRY(add_step(step));
    constant_bytes_ += kArenaAlignment;
    if (constant_bytes_ > kMostConstantBytes)
      return unsupported("constants of {} MB: a library holds no more than {} MB",
                         constant_bytes_ / 1'000'000, kMostConstantBytes / 1'000'000);
    result_.constant_bytes = constant_bytes_;
    result_.header = library_header(plan_, facts_);
    for (const char* function : kLibraryFunctions)
      result_.functions.push_back(facts_.name + "_" + function);
    const std::string_view runtime = library_file("library_runtime.c");
    result_.code = fmt::format("#include \"{}.h\"\n\n{}\n/* ---- The program ---- */\n\n",
                               facts_.name, runtime);
    result_.code += fmt::format(
        "extern const char {0}[] __attribute__((visibility(\"hidden\")));\n{1}\n{2}"
        "static int run_steps(char* const* in, char* const* out, char* arena) {{\n"
        "  int code = 0;\n{3}  (void)in, (void)out, (void)arena;\n  return code;\n}}\n\n",
        kLibraryConstants, declarations_, functions_, calls_);
    result_.code += tables() + interface();
    return std::move(result_);
  }

 private:
  Status add_step(const Step& step) {
    Result<KernelSource> made = step.kernel->source();
    if (!made) return refusal(step, made.status());
    const KernelSource source = std::move(made).value();
    if (step.kernel->workspace_bytes() > 0)
      return refusal(step, unsupported("a kernel with workspace"));
    const size_t number = steps_++;
    functions_ += fmt::format(
        "/* {} */\nstatic int step_{}(char* const* in, char* const* out, const char* const* "
        "constant, int (*code)(void**)) {{\n{}}}\n\n",
        c_remark(step.name), number,
        "  (void)in, (void)out, (void)constant, (void)code;\n" + source.body);
    std::string constants;
    for (const SharedBytes& constant : source.constants)
      constants += fmt::format("{} + {}, ", kLibraryConstants, add_constant(constant));
    // An array has one element at least: in C none is empty.
    calls_ += fmt::format(
        "  {{\n    char* const from[] = {{{}0}};\n    char* const to[] = {{{}0}};\n"
        "    const char* const constants[] = {{{}0}};\n"
        "    code = step_{}(from, to, constants, {});\n    if (code != 0) return code;\n  }}\n",
        addresses(step.inputs), addresses(step.outputs), constants, number,
        source.object.empty() ? "0" : add_object(source));
    return {};
  }

  static Status refusal(const Step& step, Status why) {
    if (why.code() != ErrorCode::kUnsupported)
      return std::move(why).with_context(printable(step.name));
    return usage_error(
        "--emit library: {} runs on {}: {}; a library holds kernels of native alone: give "
        "--targets native (`collage inspect` tells what it does not take)",
        printable(step.name), step.target.empty() ? "no target (a conversion)" : step.target,
        why.to_string());
  }

  std::string addresses(const std::vector<BufferId>& buffers) {
    std::string text;
    for (const BufferId id : buffers) text += address(plan_.buffers[id]) + ", ";
    return text;
  }

  std::string address(const Buffer& buffer) {
    switch (buffer.place) {
      case Buffer::Place::kInput:
        return fmt::format("in[{}]", buffer.index);
      case Buffer::Place::kOutput:
        return fmt::format("out[{}]", buffer.index);
      case Buffer::Place::kArena:
        return fmt::format("arena + {}", buffer.offset);
      case Buffer::Place::kPart:
        return fmt::format("{} + {}", address(plan_.buffers[buffer.index]), buffer.offset);
      case Buffer::Place::kConstant:
        break;
    }
    auto holder = std::make_shared<Tensor>(buffer.constant);
    return fmt::format("(char*){} + {}", kLibraryConstants,
                       add_constant({{holder, holder->raw()}, buffer.constant.bytes()}));
  }

  // Its offset; equal ones are there once.
  size_t add_constant(const SharedBytes& constant) {
    const auto [known, fresh] =
        constant_offsets_.emplace(sha256_hex(constant.text()), constant_bytes_);
    if (fresh) {
      result_.constants.emplace_back(known->second, constant);
      constant_bytes_ += round_up(constant.bytes, kArenaAlignment);
    }
    return known->second;
  }

  // The name of the function to call; equal code is there once.
  std::string add_object(const KernelSource& source) {
    const auto [known, fresh] =
        entries_.emplace(sha256_hex(source.entry + '\0' + source.object),
                         fmt::format("collage_library_kernel_{}", result_.objects.size()));
    if (fresh) {
      result_.objects.push_back({source.object, known->second, source.entry});
      declarations_ += fmt::format("int {}(void**);\n", known->second);
    }
    return known->second;
  }

  std::string tables() const {
    std::string bytes, names, features, shapes, inputs, outputs;
    const auto add = [&](const std::vector<PlanSignature>& signatures, const char* role,
                         std::string& tensors) {
      for (size_t i = 0; i < signatures.size(); ++i) {
        const TensorType& type = signatures[i].type;
        const DLDataType dl = dl_data_type(type.dtype);
        bytes += fmt::format("{}, ", type.bytes());
        names += c_string(signatures[i].name) + ", ";
        shapes += fmt::format("static const int64_t {}_shape_{}[] = {{{}{}0}};\n", role, i,
                              fmt::join(type.shape, ", "), type.shape.empty() ? "" : ", ");
        tensors += fmt::format("  {{{}, {}_shape_{}, {}, {}, {}, {}}},\n",
                               c_string(signatures[i].name), role, i, type.shape.size(),
                               static_cast<int>(dl.code), static_cast<int>(dl.bits), type.bytes());
      }
    };
    add(plan_.inputs, "input", inputs);
    add(plan_.outputs, "output", outputs);
    for (const std::string& feature : processor_features()) features += c_string(feature) + ", ";
    return fmt::format(
        "{shapes}static const {name}_tensor input_tensors[] = {{\n{inputs}  {{0}}\n}};\n"
        "static const {name}_tensor output_tensors[] = {{\n{outputs}  {{0}}\n}};\n"
        "static const size_t tensor_bytes[] = {{{bytes}0}};\n"
        "static const char* const tensor_names[] = {{{names}0}};\n"
        "static const char* const features[] = {{{features}0}};\n"
        "static const struct program program = {{{arena}, {threads}, features, {name}_num_inputs, "
        "{name}_num_outputs, tensor_bytes, tensor_names, run_steps}};\n\n",
        fmt::arg("shapes", shapes), fmt::arg("name", facts_.name), fmt::arg("inputs", inputs),
        fmt::arg("outputs", outputs), fmt::arg("bytes", bytes), fmt::arg("names", names),
        fmt::arg("features", features), fmt::arg("arena", plan_.arena_bytes),
        fmt::arg("threads", facts_.threads));
  }

  std::string interface() const {
    return fmt::format(
        "{0}_context* {0}_create(int threads) {{\n"
        "  return ({0}_context*)begin(&program, threads);\n}}\n"
        "int {0}_run({0}_context* c, const void* const* inputs, void* const* outputs) {{\n"
        "  return perform((struct context*)c, inputs, outputs);\n}}\n"
        "void {0}_free({0}_context* c) {{ finish((struct context*)c); }}\n"
        "const char* {0}_error(void) {{ return message; }}\n"
        "const {0}_tensor* {0}_input(size_t index) {{\n"
        "  return index < {0}_num_inputs ? &input_tensors[index] : 0;\n}}\n"
        "const {0}_tensor* {0}_output(size_t index) {{\n"
        "  return index < {0}_num_outputs ? &output_tensors[index] : 0;\n}}\n",
        facts_.name);
  }

  const Plan& plan_;
  const LibraryFacts& facts_;
  LibrarySource result_;
  size_t steps_ = 0, constant_bytes_ = 0;
  std::string declarations_, functions_, calls_;
  std::map<std::string, size_t> constant_offsets_;  // by hash
  std::map<std::string, std::string> entries_;      // by hash
};

}  // namespace

Result<LibrarySource> library_source(const Plan& plan, const LibraryFacts& facts) {
  return Writing(plan, facts).run();
}

}  // namespace collage
