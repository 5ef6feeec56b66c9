#include "artifact/library/library_header.h"

#include <algorithm>
#include <cctype>

#include "base/printable.h"
#include "collage/version.h"

namespace collage {

namespace {

// "inputs[0]   image   float32 (1, 3, 12, 12)   1728 bytes"
std::string lines_of(const std::vector<PlanSignature>& signatures, const char* array) {
  std::string text;
  for (size_t i = 0; i < signatures.size(); ++i) {
    const TensorType& type = signatures[i].type;
    text +=
        fmt::format(" *   {}[{}]  {}  {} {}  {} bytes\n", array, i, c_remark(signatures[i].name),
                    dtype_name(type.dtype), shape_to_string(type.shape), type.bytes());
  }
  return text;
}

constexpr char kNeedsNothing[] =
    "It needs nothing of Collage, only the C\n * library, libm and threads: cc program.c {} -lm "
    "-pthread";
constexpr char kNeedsRuntime[] =
    "It needs libcollage_runtime and\n * what lies beside it: cc program.c {} -lcollage_runtime";

constexpr char kHeader[] =
    R"(/* {name}: made by collage {version} of {model}, for {threads} threads. {needs}
 *
{tensors} *
 * Tensors are dense, in row-major order; a bool is a byte. Those that begin on a multiple of 64 bytes are used
 * where they are, others are copied. Outputs overlap nothing.
 *
 *   {name}_context* context = {name}_create(0);
 *   if (context == NULL || {name}_run(context, inputs, outputs) != 0) puts({name}_error());
 *   {name}_free(context);
 */
#ifndef COLLAGE_LIBRARY_{guard}_H
#define COLLAGE_LIBRARY_{guard}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

enum {{ {name}_num_inputs = {inputs}, {name}_num_outputs = {outputs} }};

/* Memory for intermediate results, and threads. One thread at a time runs a context; contexts share code and
 * weights, and run at once. */
typedef struct {name}_context {name}_context;

/* With that many threads, the one that runs it among them; 0: {threads}. Null on failure. */
{name}_context* {name}_create(int threads);
/* Reads {name}_num_inputs tensors and writes {name}_num_outputs. 0 on success. */
int {name}_run({name}_context* context, const void* const* inputs, void* const* outputs);
/* Null is ignored. */
void {name}_free({name}_context* context);
/* Why the last call of {name}_create or {name}_run on this thread failed. */
const char* {name}_error(void);

typedef struct {{
  const char* name;
  const int64_t* shape;
  int32_t ndim;
  uint8_t code, bits; /* DLPack's DLDataType, of one lane */
  size_t bytes;
}} {name}_tensor;
/* Null where there is none of that number. */
const {name}_tensor* {name}_input(size_t index);
const {name}_tensor* {name}_output(size_t index);

#ifdef __cplusplus
}}
#endif

#endif
)";

}  // namespace

std::string c_string(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 128 && (std::isalnum(byte) != 0 || c == '_' || c == ' ');
    literal += plain ? std::string(1, c) : fmt::format("\\{:03o}", byte);
  }
  return literal + "\"";
}

std::string c_remark(std::string_view text) {
  std::string remark = printable(text);
  std::replace(remark.begin(), remark.end(), '*', '_');
  std::replace(remark.begin(), remark.end(), '\\', '_');
  std::replace(remark.begin(), remark.end(), '?', '_');  // of trigraphs
  return remark;
}

std::string library_header(const Plan& plan, const LibraryFacts& facts, bool needs_runtime) {
  std::string guard = facts.name;
  std::transform(guard.begin(), guard.end(), guard.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return fmt::format(
      kHeader, fmt::arg("name", facts.name), fmt::arg("guard", guard),
      fmt::arg("version", COLLAGE_VERSION), fmt::arg("model", c_remark(facts.model)),
      fmt::arg("threads", facts.threads),
      fmt::arg("needs", fmt::format(fmt::runtime(needs_runtime ? kNeedsRuntime : kNeedsNothing),
                                    c_remark(facts.file))),
      fmt::arg("inputs", plan.inputs.size()), fmt::arg("outputs", plan.outputs.size()),
      fmt::arg("tensors", lines_of(plan.inputs, "inputs") + lines_of(plan.outputs, "outputs")));
}

}  // namespace collage
