// Functions of the user's own, by label, which tensor programs, modules and ONNX nodes may call
// (docs/tensor-programs.md): anything that a library offers, over whole dense arrays.
//
//   collage::register_function({
//       .label = "mine.cumulated",
//       .types = [](std::span<const collage::ArrayType> inputs)
//           -> collage::Result<std::vector<collage::ArrayType>> { return {{inputs[0]}}; },
//       .call = [](std::span<const collage::Tensor> inputs, std::span<collage::Tensor> results) {
//         return cumulate(inputs[0].data<float>(), results[0].data<float>(), inputs[0].shape());
//       },
//   });
//
// Worker processes load what a plugin registers, and measure its kernels like any other. A function
// that an application registers exists in its process alone: its kernels count at their estimate,
// and the whole program is verified and timed.
#pragma once

#include <collage/expression.h>
#include <collage/plugin.h>
#include <collage/tensor.h>

#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage {

struct ArrayType {
  Shape shape;
  DType dtype = DType::kFloat32;
};

// A callable whose last argument, the values of attributes, may be left out.
template <typename Signature>
class WithAttributes;
template <typename R, typename... Args>
class WithAttributes<R(Args...)>
    : public std::function<R(Args..., const Expression::Attributes& attributes)> {
  using Base = std::function<R(Args..., const Expression::Attributes& attributes)>;

 public:
  WithAttributes() = default;
  template <typename F>
  requires std::is_invocable_r_v<R, F&, Args..., const Expression::Attributes&> WithAttributes(F f)
      : Base(std::move(f)) {}  // NOLINT: implicit on purpose
  template <typename F>
  requires std::is_invocable_r_v<R, F&, Args...> WithAttributes(F f)  // NOLINT: implicit on purpose
      : Base([f = std::move(f)](Args... args, const Expression::Attributes&) mutable {
          return f(args...);
        }) {}
};

struct FunctionDefinition {
  // Letters, digits, '_', '.' and ':'. Costs are kept under the label, so a changed function needs
  // another one.
  std::string label;
  // Returns the types of the results, one or more, for inputs of these types; or why they do not
  // fit. One with effects may have none.
  WithAttributes<Result<std::vector<ArrayType>>(std::span<const ArrayType> inputs)> types;
  // Fills the results, which have these types. Tensors are views of the program's memory, dense,
  // row-major, aligned to 64 bytes, and valid until the function returns; to_dlpack() gives them to
  // other libraries. Inputs must not be written. Results may depend on the inputs alone, since
  // equal calls are made once, and calls with constants when a model is compiled. An exception is
  // an error, which ends the run. Any thread may call it, and several at once.
  WithAttributes<Status(std::span<const Tensor> inputs, std::span<Tensor> results)> call;
  // The inputs that it updates in place, which have the types of the first results, in order: the
  // function gets these results, filled with the inputs' values.
  std::vector<size_t> updates = {};
  // "domain::Operator": ONNX nodes that become calls of it, inputs and attributes as they are.
  // Empty: none. Nodes that Collage implements keep their meaning.
  std::string onnx = {};
  // What calls may state, with defaults, which say of what kind the values are.
  Expression::Attributes attributes = {};
  // Calls may state others beside these, which both callables get and `types` judges.
  bool open_attributes = false;
  // It does more than fill its results: calls are made once in each run, in the order of the text.
  // While a model is compiled, checked or timed it is not called, and its results are zeros.
  bool effects = false;
};

// Registers for all models that are loaded afterwards, for the rest of the process. kUsage: the
// label is malformed, or the label or the ONNX node is taken.
Status register_function(FunctionDefinition definition);
// Registers the functions of all labels that begin with `prefix` ("torch."): `make` gives each when
// a model first names it, or says why there is none. kUsage: the prefix is malformed or taken.
Status register_functions(const std::string& prefix,
                          std::function<Result<FunctionDefinition>(const std::string& label)> make);
// Makes nodes of ONNX, "domain::Operator", calls of the function of a label, beside its own `onnx`.
// kUsage: the node's name is malformed or taken, or the function has effects; kBadModel: there is
// no such function.
Status register_node(const std::string& node, const std::string& label);

// What a function of the user's computes for several elements of an array at once, such as a few
// instructions of a processor: a program over the number of its lanes,
//
//   program (n = 8) {
//     param A: uint8[4];
//     param B: int8[n, 4];
//     result C[j:n] = sum(r:4) int32(A[r]) * int32(B[j, r]);
//   }
//
// or one over a tile, of which k is a multiple of what the program states,
//
//   program (k = 16) {
//     param A: bfloat16[16, 2 * k];
//     param B: bfloat16[k, 16, 2];
//     result C[i:16, j:16] = sum(t:k, r:2) float32(A[i, t * 2 + r]) * float32(B[t, j, r]);
//   }
//
// and the function, which adds C to sums, int32 or float32 that lie like C, as A and B lie; of a
// tile, what the first index of C, A and B selects is rows[0], rows[1] and rows[2] elements apart.
// Schedules name loops, function and n or k: S.update(0).tensorise(j, r, NAME, 8), or
// S.update(0).tensorise(i, j, t, r, NAME, 16) (docs/tensor-programs.md#instructions-of-users).
struct IntrinsicDefinition {
  std::string name;  // letters, digits and '_'
  std::string program;
  // Null where the machine has none: the loops of the program that names it stay.
  void (*lowering)(int64_t n, void* sums, const void* A, const void* B,
                   const int64_t* rows) = nullptr;
};
// Registers it for the rest of the process. kBadModel: the program is none of that form;
// kVerification: the function computes something else, on random values. Any thread may call the
// function, and several at once. What was compiled with it cannot be saved.
Status register_intrinsic(const IntrinsicDefinition& definition);

}  // namespace collage

// Makes a shared library of functions a plugin, for `collage … --plugin LIB`:
//
//   COLLAGE_FUNCTIONS({.label = "mine.cumulated", .types = …, .call = …}, {.label = …})
#define COLLAGE_FUNCTIONS(...)                                                             \
  COLLAGE_REGISTER([] {                                                                    \
    for (auto& definition : std::vector<::collage::FunctionDefinition>{__VA_ARGS__})       \
      if (auto status = ::collage::register_function(std::move(definition)); !status.ok()) \
        return status;                                                                     \
    return ::collage::Status();                                                            \
  })
