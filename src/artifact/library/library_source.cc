#include "artifact/library/library_source.h"

#include <map>

#include "artifact/library/library_header.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/printable.h"
#include "base/processor.h"
#include "collage/version.h"
#include "runtime/dlpack_type.h"

namespace collage {

// By name, empty where there is none (cmake/embed.cmake).
std::string_view library_file(std::string_view name);

namespace {

class Writing {
 public:
  Writing(const Plan& plan, const LibraryFacts& facts) : plan_(plan), facts_(facts) {}

  Result<LibrarySource> run() {
    for (const Step& step : plan_.steps) {
      TRY(add_step(step));
      if (!result_.needs_runtime.empty()) return loaded();
    }
    constant_bytes_ += kArenaAlignment;
    if (constant_bytes_ > kMostConstantBytes)
      return unsupported("constants of {} MB: a library holds no more than {} MB",
                         constant_bytes_ / 1'000'000, kMostConstantBytes / 1'000'000);
    result_.constant_bytes = constant_bytes_;
    begin_code("library_runtime.c");
    result_.code += fmt::format(
        "{}\n{}"
        "static int run_steps(char* const* in, char* const* out, char* arena) {{\n"
        "  int code = 0;\n{}  (void)in, (void)out, (void)arena;\n  return code;\n}}\n\n",
        declarations_, functions_, calls_);
    result_.code += tables() + program_table();
    result_.code += interface("  return ({0}_context*)begin(&program, threads);\n",
                              "perform((struct context*)c, inputs, outputs)",
                              "finish((struct context*)c)", "message");
    return std::move(result_);
  }

 private:
  // The program's artifact, loaded by libcollage_runtime for each context.
  Result<LibrarySource> loaded() {
    LibrarySource result;
    result.needs_runtime = std::move(result_.needs_runtime);
    result_ = std::move(result);
    begin_code("runtime.h");
    result_.code += tables();
    result_.code += interface(
        fmt::format(
            "  collage_program* program;\n  collage_context* context = 0;\n"
            "  if (collage_program_load_static({0}, (size_t)({0}_end - {0}),\n"
            "                                  threads > 0 ? threads : {1}, &program) != 0)\n"
            "    return 0;\n"
            "  (void)collage_context_create(program, &context);\n"
            "  collage_program_free(program);\n",
            kLibraryConstants, facts_.threads) +
            "  return ({0}_context*)context;\n",
        "collage_context_run_dense((collage_context*)c, inputs, outputs)",
        "collage_context_free((collage_context*)c)", "collage_last_error()");
    return std::move(result_);
  }

  void begin_code(std::string_view runtime) {
    result_.header = library_header(plan_, facts_, !result_.needs_runtime.empty());
    for (const char* function : kLibraryFunctions)
      result_.functions.push_back(facts_.name + "_" + function);
    result_.code = fmt::format(
        "#include \"{0}.h\"\n\n{1}\n/* ---- The program ---- */\n\n"
        "extern const char {2}[] __attribute__((visibility(\"hidden\")));\n"
        "extern const char {2}_end[] __attribute__((visibility(\"hidden\")));\n",
        facts_.name, library_file(runtime), kLibraryConstants);
  }

  Status add_step(const Step& step) {
    Result<KernelSource> made = step.kernel->source();
    if (made && step.kernel->workspace_bytes() > 0) made = unsupported("it needs workspace");
    if (!made && made.status().code() != ErrorCode::kUnsupported)
      return std::move(made).status().with_context(printable(step.name));
    if (!made) {
      result_.needs_runtime =
          fmt::format("{} runs on {}: {}", printable(step.name),
                      step.target.empty() ? "no target (a conversion)" : step.target,
                      made.status().to_string());
      return {};
    }
    const KernelSource source = std::move(made).value();
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
    std::string shapes, inputs, outputs;
    const auto add = [&](const std::vector<PlanSignature>& signatures, const char* role,
                         std::string& tensors) {
      for (size_t i = 0; i < signatures.size(); ++i) {
        const TensorType& type = signatures[i].type;
        const DLDataType dl = dl_data_type(type.dtype);
        shapes += fmt::format("static const int64_t {}_shape_{}[] = {{{}{}0}};\n", role, i,
                              fmt::join(type.shape, ", "), type.shape.empty() ? "" : ", ");
        tensors += fmt::format("  {{{}, {}_shape_{}, {}, {}, {}, {}}},\n",
                               c_string(signatures[i].name), role, i, type.shape.size(),
                               static_cast<int>(dl.code), static_cast<int>(dl.bits), type.bytes());
      }
    };
    add(plan_.inputs, "input", inputs);
    add(plan_.outputs, "output", outputs);
    return fmt::format(
        "{shapes}static const {name}_tensor input_tensors[] = {{\n{inputs}  {{0}}\n}};\n"
        "static const {name}_tensor output_tensors[] = {{\n{outputs}  {{0}}\n}};\n",
        fmt::arg("shapes", shapes), fmt::arg("name", facts_.name), fmt::arg("inputs", inputs),
        fmt::arg("outputs", outputs));
  }

  std::string program_table() const {
    std::string bytes, names, features;
    for (const auto* signatures : {&plan_.inputs, &plan_.outputs})
      for (const PlanSignature& signature : *signatures) {
        bytes += fmt::format("{}, ", signature.type.bytes());
        names += c_string(signature.name) + ", ";
      }
    for (const std::string& feature : processor_features()) features += c_string(feature) + ", ";
    return fmt::format(
        "static const size_t tensor_bytes[] = {{{bytes}0}};\n"
        "static const char* const tensor_names[] = {{{names}0}};\n"
        "static const char* const features[] = {{{features}0}};\n"
        "static const struct program program = {{{arena}, {threads}, features, {name}_num_inputs, "
        "{name}_num_outputs, tensor_bytes, tensor_names, run_steps}};\n\n",
        fmt::arg("name", facts_.name), fmt::arg("bytes", bytes), fmt::arg("names", names),
        fmt::arg("features", features), fmt::arg("arena", plan_.arena_bytes),
        fmt::arg("threads", facts_.threads));
  }

  // The functions of the header: statements of `create`, and what the next three evaluate to.
  std::string interface(const std::string& create, const char* run, const char* release,
                        const char* why) const {
    return fmt::format(
        "{0}_context* {0}_create(int threads) {{\n{1}}}\n"
        "int {0}_run({0}_context* c, const void* const* inputs, void* const* outputs) {{\n"
        "  return {2};\n}}\n"
        "void {0}_free({0}_context* c) {{ {3}; }}\n"
        "const char* {0}_error(void) {{ return {4}; }}\n"
        "const {0}_tensor* {0}_input(size_t index) {{\n"
        "  return index < {0}_num_inputs ? &input_tensors[index] : 0;\n}}\n"
        "const {0}_tensor* {0}_output(size_t index) {{\n"
        "  return index < {0}_num_outputs ? &output_tensors[index] : 0;\n}}\n",
        facts_.name, fmt::format(fmt::runtime(create), facts_.name), run, release, why);
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

std::string runtime_library() {
  const std::string_view version = COLLAGE_VERSION;
  return fmt::format("libcollage_runtime.so.{}", version.substr(0, version.find('.')));
}

Result<LibrarySource> library_source(const Plan& plan, const LibraryFacts& facts) {
  return Writing(plan, facts).run();
}

}  // namespace collage
