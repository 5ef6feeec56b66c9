// Runs variants of any backend and compares them with the interpreter. Buffers carry canaries,
// results and workspaces start as NaN and, in a second run, as huge numbers; tensors are packed
// into the variant's layouts element by element, by code that shares nothing with a backend.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iosfwd>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "ir/attrs.h"

namespace collage::testing {

// Makes graphs whose constants are seeded.
class Graph {
 public:
  explicit Graph(uint64_t seed = 1) : seed_(seed) {}
  Expr input(Shape shape, DType dtype = DType::kFloat32);
  Expr constant(Shape shape, double scale = 1, double offset = 0);
  Expr scalar(float value);
  Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {});
  Function function(const Expr& result) const { return make_function(params_, result); }

 private:
  uint64_t seed_;
  std::vector<Expr> params_;
};

struct Conv {
  Shape source;  // N, C, spatial…
  int64_t outputs;
  Ints kernel;
  Ints strides = {}, padding = {}, dilation = {};
  int64_t groups = 1;
};
void PrintTo(const Conv& conv, std::ostream* os);
// A convolution of `data`, or of a new input; results are of the size of the inputs, where
// exponentials are tame.
Expr conv(Graph& graph, const Conv& conv, Expr data = nullptr);

struct TransposedConv {
  Conv conv;
  Ints output_padding = {};
};
void PrintTo(const TransposedConv& conv, std::ostream* os);
// The same of a transposed convolution.
Expr transposed_conv(Graph& graph, const TransposedConv& conv);

Tensor random_tensor(Shape shape, uint64_t seed, double scale = 1, double offset = 0);
// Of a function of float32 parameters, in (-2, 2), and integers of 8 bits, of all values.
std::vector<Tensor> random_inputs(const Function& function);
// The function's results by the interpreter.
std::vector<Tensor> evaluate(const Function& function, const std::vector<Tensor>& inputs);

// How far an element may be from what is expected: the sum of these. NaN is expected where the
// interpreter gives it, and infinities are exact.
struct Tolerance {
  double mean = 2e-5;     // of the root of the mean square of the result
  double largest = 0;     // of its largest element, or of 1e-2 where that is more
  double element = 1e-5;  // of the element itself
};

// Fails the test where an element of `got` is not as close to that of `expected` as they must be.
void expect_close(const Tensor& expected, const Tensor& got, const Tolerance& tolerance = {});

// Of the buffers that a kernel of the variant runs with.
BufferSizes buffers_of(const Function& function, const Variant& variant);

// What one run of a kernel gives, row-major and in the result's own type. `leftovers` is the byte
// that results and workspace are full of before. Fails the test where something else is written
// than results and workspace, or the padding of a result's layout is not zero.
std::vector<Tensor> run_guarded(Kernel& kernel, const Function& function, const Variant& variant,
                                const std::vector<Tensor>& inputs, int leftovers = 0xff);

// Fails the test where the variant cannot be compiled, or one of two runs is wrong, or its twin or
// the kernel saved and loaded gives other bits, or NaN among the inputs makes NaN of other results
// than it should and the backend does not say so.
void check_variant(const Backend& backend, const Target& target, const CompileOptions& options,
                   const Function& function, const Variant& variant,
                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
                   const Tolerance& tolerance = {});

// Fails the test where one NaN among the numbers of an input, of each in turn, makes NaN of other
// results than it does in the interpreter, and neither the backend nor the variant says so.
void check_nan(const Backend& backend, Kernel& kernel, const Function& function,
               const Variant& variant, const std::vector<Tensor>& inputs);

// The operators of op_cases(), for tests that have one as their parameter, and the tests' names.
std::vector<std::string> operators_with_cases();
std::string test_name_of_operator(const ::testing::TestParamInfo<std::string>& info);

// Calls check(function, inputs) with every case of the operator that the backend takes on two
// threads. Fails the test where the backend refuses all cases of an operator that is not among
// `refused`, or takes one of an operator that is; skips it, with the reason, where it refuses all
// as expected.
using CheckCase = std::function<void(const Function&, const std::vector<Tensor>&)>;
void check_operator(const Backend& backend, const Target& target, const std::string& op,
                    const std::set<std::string>& refused, const CheckCase& check);

// All variants on two threads, against the interpreter.
void check_variants(const Backend& backend, const Target& target, const Function& function,
                    const std::vector<Tensor>& inputs, const Tolerance& tolerance = {});

}  // namespace collage::testing
