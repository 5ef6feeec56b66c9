// Tensor programs as text. What is accepted prints and parses to the same program; what is proven
// to stay inside its arrays is computed, for values that nobody expects, and no index is out of
// range.
#include <gtest/gtest.h>

#include "fuzz/fuzz.h"
#include "fuzz/mutate_text.h"
#include "tensor_program/accesses.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/program_text.h"

namespace collage::fuzz {
namespace {

using tensor_program::Program;

const std::vector<std::string>& program_seeds() {
  static const std::vector<std::string> texts = {
      R"(program {
  param A: float32[8, 16];
  const B: float32[16, 4];
  stage P[j1:2, k:16, j0:2] = B[k, j1 * 2 + j0];
  result C[i:8, j:4] = sum(k:16) A[i, k] * P[j / 2, k, j % 2];
  schedule {
    P.compute_root();
    C.split(i, task, row, 4, guarded);
    C.parallel(task);
    C.vectorise(j, 2);
    C.update(0).reorder(j, k, row, task);
    C.update(0).unroll(k);
  }
})",
      R"(program {
  param x: float32[4, 10];
  const t: int32[3] = {2, -1, 0};
  stage part[i:4, u:4] = sum(r:2) x[i, r * 4 + u];
  update part[i, r] = sum(r:2) x[i, 8 + r];
  result joined[i:4, j:13]: float32;
  update joined[i, r] = set(r:10) x[i, r];
  update joined[i, r + 10] = set(r:3) part[i, r];
  result largest[i:4] = max(r:4) part[i, r];
  result picked[j:3] = select(t[j] < 0, 0.0f, largest[max(t[j], 0)]);
})",
      R"(program {
  param n: int32[6];
  param q: int64[6];
  param b: bool[6];
  result y[i:6] = n[min(max(n[i], 0), 5)] / n[i] + n[i] % -3 - abs(n[5 - i]);
  result z[i:6] = q[int32(min(max(q[i], 0i64), 5i64))] * 7i64 / q[i];
  result w[i:6] = !b[i] && n[i] >= 3 || q[i] != 2i64;
  result least[i:2] = min(k:3) n[i * 3 + k];
  result times[i:2] = product(k:3) q[i * 3 + k];
})",
      R"(program {
  param x: float64[5];
  param v: float32[5];
  stage e[i:5] = exp(v[i] - 1.5f) + tanh(v[4 - i]) * likely(v[i]);
  stage s[j:1] = sum(k:5) e[k];
  result y[i:5] = e[i] / s[0] + float32(x[i]) + power(v[i], 2.0f) - sqrt(abs(floor(v[i])));
  result r[i:5] = int32(x[i]) + int32(round(v[i]));
  result d[i:5] = x[i] * 0.1d + min(x[i], 1e-05d) + max(x[i], -2.0d);
})",
      R"(program {
  param n: int32[8];
  result counts[j:4]: int32;
  update counts[j] = set() 0;
  update counts[min(max(n[r], 0), 3)] = sum(r:8) 1;
  schedule { counts.update(0).vectorise(j, 4); }
})"};
  return texts;
}

// Extremes of the type, then small values.
Tensor unexpected(const TensorType& type) {
  Tensor tensor = Tensor::zeros(type.dtype, type.shape);
  const float reals[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, 1e-40f, 3, -7.5f};
  const int64_t integers[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1, 0, 1, 5, 100};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto k = static_cast<size_t>((i * 5 + 1) % 9);
    switch (type.dtype) {
      case DType::kFloat32:
        tensor.data<float>()[i] = reals[k];
        break;
      case DType::kFloat64:
        tensor.data<double>()[i] = static_cast<double>(reals[k]) * 1e270;
        break;
      case DType::kInt32:
        tensor.data<int32_t>()[i] = static_cast<int32_t>(integers[k]);
        break;
      case DType::kInt64:
        tensor.data<int64_t>()[i] = integers[k];
        break;
      default:  // bytes that are neither true nor false, among others
        for (size_t b = 0; b < dtype_size(type.dtype); ++b)
          static_cast<uint8_t*>(tensor.raw())[static_cast<size_t>(i) * dtype_size(type.dtype) + b] =
              static_cast<uint8_t>(i * 37 + 2);
    }
  }
  return tensor;
}

// Whether walking over it takes no more than a moment.
bool is_small(const Program& program) {
  constexpr double kMostPoints = 20'000, kMostElements = 1'000'000;
  double points = 0;
  for (const tensor_program::Buffer& buffer : program.buffers)
    if (static_cast<double>(num_elements(buffer.type.shape)) > kMostElements) return false;
  for (const tensor_program::Stage& stage : program.stages) {
    points += static_cast<double>(num_elements(stage.shape()));
    for (const tensor_program::Update& update : stage.updates) {
      double of_update = 1;
      for (const tensor_program::Axis& axis : walked_axes(stage, update))
        of_update *= static_cast<double>(axis.extent);
      points += of_update;
    }
  }
  return points <= kMostPoints;
}

Outcome run_program(const std::string& input) {
  const Result<Program> program = tensor_program::parse_program(input);
  if (!program.ok()) {
    const std::string why = program.status().to_string();
    const bool syntax =
        why.find("should stand") != std::string::npos || why.find("no number") != std::string::npos;
    return syntax ? Outcome::kNoSyntax : Outcome::kRefused;
  }
  const Result<Program> again = tensor_program::parse_program(program->to_string());
  EXPECT_TRUE(again.ok()) << again.status().to_string() << "\n" << program->to_string();
  if (again.ok()) {
    EXPECT_TRUE(equal(*program, *again)) << program->to_string();
  }
  const Status inside = check_accesses(*program);
  if (!inside.ok()) return Outcome::kRefused;
  if (!is_small(*program)) return Outcome::kAccepted;
  Program whole = *program;
  std::vector<Tensor> params;
  for (tensor_program::Buffer& buffer : whole.buffers) {
    if (buffer.is_constant && !buffer.value.defined()) buffer.value = unexpected(buffer.type);
    if (!buffer.is_constant) params.push_back(unexpected(buffer.type));
  }
  const Result<std::vector<Tensor>> values = evaluate(whole, params);
  if (!values.ok()) {
    EXPECT_EQ(values.status().code(), ErrorCode::kUnsupported) << values.status().to_string();
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget tensor_programs() {
  return {"tensor_programs", program_seeds(),
          [mutator = TextMutator(program_seeds())](Random& random) { return mutator.make(random); },
          run_program};
}

}  // namespace collage::fuzz
