// Transformations of tensor programs, text in, text out; values before and after against each other
// and against the operators' reference.
#include "tensor_program/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/parsing.h"
#include "tensor_program/program_text.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

Tensor counted(Shape shape, int first) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>((i * 7 + first) % 13 - 6);
  return tensor;
}

std::vector<float> values(const Program& program, const std::vector<Tensor>& params) {
  auto results = evaluate(program, params);
  EXPECT_TRUE(results.ok()) << results.status().to_string() << program.to_string();
  if (!results.ok()) return {};
  const auto span = results->at(0).values<float>();
  return {span.begin(), span.end()};
}

const char kMatmul[] = R"(program {
  param A: float32[16, 16];
  param B: float32[16, 16];
  result C[i:16, j:16] = sum(k:16) A[i, k] * B[k, j];
}
)";

/// The conversion to a weight's layout is lifted out of the product, and computed once for a
/// constant.
TEST(Transform, ALayoutIsLiftedAndFolded) {
  const Program matmul = parsed(kMatmul);
  const Program blocked = parsed(R"(program {
  param A: float32[16, 16];
  param B: float32[16, 16];
  stage B_blocked[i0_block:2, i1:16, i0_inner:8] = B[i0_block * 8 + i0_inner, i1];
  result C[i:16, j:16] = sum(k:16) A[i, k] * B_blocked[k / 8, j, k % 8];
}
)");
  auto lifted = lift_stage(blocked, "B_blocked");
  ASSERT_TRUE(lifted.ok()) << lifted.status().to_string();
  EXPECT_EQ(lifted->stage.to_string(), R"(program {
  param B: float32[16, 16];
  result B_blocked[i0_block:2, i1:16, i0_inner:8] = B[i0_block * 8 + i0_inner, i1];
}
)");
  EXPECT_EQ(lifted->rest.to_string(), R"(program {
  param A: float32[16, 16];
  param B_blocked: float32[2, 16, 8];
  result C[i:16, j:16] = sum(k:16) A[i, k] * B_blocked[k / 8, j, k % 8];
}
)");
  const Tensor a = counted({16, 16}, 1), b = counted({16, 16}, 5);
  auto converted = evaluate(lifted->stage, std::vector<Tensor>{b});
  ASSERT_TRUE(converted.ok());
  const std::vector<float> plain = values(matmul, {a, b});
  EXPECT_EQ(values(blocked, {a, b}), plain);
  EXPECT_EQ(values(lifted->rest, {a, converted->at(0)}), plain);

  // The same with B a constant: the conversion runs when the program is made.
  Program with_constant = blocked;
  with_constant.buffers[1].is_constant = true;
  with_constant.buffers[1].value = b;
  auto folded = fold_constants(with_constant);
  ASSERT_TRUE(folded.ok());
  EXPECT_EQ(folded->to_string(), R"(program {
  param A: float32[16, 16];
  const B_blocked: float32[2, 16, 8];
  result C[i:16, j:16] = sum(k:16) A[i, k] * B_blocked[k / 8, j, k % 8];
}
)");
  EXPECT_EQ(values(*folded, {a}), plain);
}

/// What a stage is computed from goes with it, as far as nothing else needs it.
TEST(Transform, AStageIsLiftedWithWhatItReads) {
  const Program program = parsed(R"(program {
  param A: float32[4, 6];
  param B: float32[6];
  param D: float32[6];
  const f: float32[1] = {3};
  stage s[j:6] = B[j] * f[0];
  stage t[j:6] = s[j] + D[j];
  result y[i:4, j:6] = A[i, j] * t[j] - D[j];
  schedule {
    s.compute_at(t, j);
    t.compute_root();
    t.vectorise(j, 2);
    y.parallel(i);
  }
}
)");
  auto lifted = lift_stage(program, "t");
  ASSERT_TRUE(lifted.ok()) << lifted.status().to_string();
  EXPECT_EQ(lifted->stage.to_string(), R"(program {
  param B: float32[6];
  param D: float32[6];
  const f: float32[1] = {3.0f};
  stage s[j:6] = B[j] * f[0];
  result t[j:6] = s[j] + D[j];
  schedule {
    s.compute_at(t, j);
    t.vectorise(j, 2);
  }
}
)");
  EXPECT_EQ(lifted->rest.to_string(), R"(program {
  param A: float32[4, 6];
  param D: float32[6];
  param t: float32[6];
  result y[i:4, j:6] = A[i, j] * t[j] - D[j];
  schedule {
    y.parallel(i);
  }
}
)");
  const Tensor a = counted({4, 6}, 1), b = counted({6}, 5), d = counted({6}, 8);
  auto stage = evaluate(lifted->stage, std::vector<Tensor>{b, d});
  ASSERT_TRUE(stage.ok());
  EXPECT_EQ(values(lifted->rest, {a, d, stage->at(0)}), values(program, {a, b, d}));
}

/// The layout that a result is stored in, as a program of its own.
TEST(Transform, AResultIsLeftAsItWasComputed) {
  const Program program = parsed(R"(program {
  param A: float32[4, 6];
  stage C[i:4, j:6] = A[i, j] * 2.0f;
  result D[b:2, r:4, c:3] = C[r, b * 3 + c];
  schedule {
    C.compute_at(D, r);
    C.vectorise(j, 2);
    D.unroll(b);
  }
}
)");
  auto lifted = lift_result(program, "D");
  ASSERT_TRUE(lifted.ok()) << lifted.status().to_string();
  EXPECT_EQ(lifted->rest.to_string(), R"(program {
  param A: float32[4, 6];
  result C[i:4, j:6] = A[i, j] * 2.0f;
  schedule {
    C.vectorise(j, 2);
  }
}
)");
  EXPECT_EQ(lifted->stage.to_string(), R"(program {
  param x: float32[4, 6];
  result y[i0:2, i1:4, i2:3] = x[i1, i0 * 3 + i2];
}
)");
  const Tensor a = counted({4, 6}, 1);
  auto plain = evaluate(lifted->rest, std::vector<Tensor>{a});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(values(lifted->stage, {plain->at(0)}), values(program, {a}));
  // A schedule whose threads shared the result's loops says nothing of what remains.
  Program parallel = program;
  parallel.schedule.push_back({"D", -1, PrimitiveKind::kParallel, {"b"}});
  EXPECT_TRUE(lift_result(parallel, "D")->rest.schedule.empty());
}

/// Steps of what goes, and at its loops, go too.
TEST(Transform, SchedulesNameWhatIsThere) {
  const Program program = parsed(R"(program {
  param A: float32[4, 6];
  const B: float32[6] = {1, 2, 3, 4, 5, 6};
  stage F[j:6] = B[j] * 2.0f;
  stage S[j:6] = sum(k:4) A[k, j];
  stage T[j:6] = S[j] + F[j];
  stage C[i:4, j:6] = A[i, j] * T[j];
  result D[b:2, r:4, c:3] = C[r, b * 3 + c];
  schedule {
    F.compute_root();
    F.vectorise(j, 2);
    S.compute_at(T, j);
    S.hoist_storage(T, j);
    T.compute_at(C, i);
    T.hoist_storage(C, i);
    C.compute_at(D, r);
    C.hoist_storage(D, b);
  }
}
)");
  const auto schedule_of = [](const Program& made) {
    EXPECT_TRUE(verify(made).ok()) << verify(made).to_string() << made.to_string();
    const std::string text = made.to_string();
    const size_t at = text.find("  schedule");
    return at == std::string::npos ? "" : text.substr(at);
  };
  const Lifted stage = lift_stage(program, "T").value();
  EXPECT_EQ(schedule_of(stage.stage),
            "  schedule {\n    F.compute_root();\n    F.vectorise(j, 2);\n    "
            "S.compute_at(T, j);\n    S.hoist_storage(T, j);\n  }\n}\n");
  EXPECT_EQ(schedule_of(stage.rest),
            "  schedule {\n    C.compute_at(D, r);\n    C.hoist_storage(D, b);\n  }\n}\n");
  const std::string without_result = schedule_of(lift_result(program, "D")->rest);
  EXPECT_THAT(without_result, HasSubstr("T.hoist_storage(C, i);"));
  EXPECT_THAT(without_result, ::testing::Not(HasSubstr("D")));
  EXPECT_THAT(schedule_of(*fold_constants(program)), ::testing::Not(HasSubstr("F.")));
  Program other = program;
  other.schedule = {{"T", -1, PrimitiveKind::kHoistStorage, {"D", "b"}}};
  EXPECT_FALSE(lift_result(other, "D").ok());
  other.find_stage("D")->value = zero(DType::kFloat32);
  EXPECT_EQ(schedule_of(without_unused(other)), "");
}

/// A product whose result is stored in blocks, and the next one that wants it in those blocks: what
/// stands between them goes.
TEST(Transform, NeighbouringLayoutsCancel) {
  const std::string text = R"(program {
  param A: float32[4, 16];
  param B: float32[16, 16];
  param D: float32[16, 3];
  stage C[i:4, j:16] = sum(k:16) A[i, k] * B[k, j];
  stage C_blocked[j1:2, i:4, j0:8] = C[i, j1 * 8 + j0];
  stage C_plain[i:4, j:16] = C_blocked[j / 8, i, j % 8];
  stage C_again[j1:2, i:4, j0:8] = C_plain[i, j1 * 8 + j0];
  result E[i:4, j:3] = sum(k:16) C_again[k / 8, i, k % 8] * D[k, j];
  schedule {
    C.compute_root();
    C_plain.compute_root();
  }
}
)";
  const Program before = parsed(text);
  const Program after = cancel_layouts(before);
  EXPECT_EQ(after.to_string(), R"(program {
  param A: float32[4, 16];
  param B: float32[16, 16];
  param D: float32[16, 3];
  stage C[i:4, j:16] = sum(k:16) A[i, k] * B[k, j];
  stage C_again[j1:2, i:4, j0:8] = C[i, j1 * 8 + j0];
  result E[i:4, j:3] = sum(k:16) C_again[k / 8, i, k % 8] * D[k, j];
  schedule {
    C.compute_root();
  }
}
)");
  const std::vector<Tensor> params{counted({4, 16}, 0), counted({16, 16}, 3), counted({16, 3}, 9)};
  EXPECT_EQ(values(after, params), values(before, params));
}

/// Layouts that differ stay, as one move.
TEST(Transform, LayoutsThatDoNotUndoEachOtherAreJoined) {
  const Program program = cancel_layouts(parsed(R"(program {
  param x: float32[6, 4];
  stage t[i:4, j:6] = x[j, i];
  stage f[i:24] = t[i / 6, i % 6];
  result y[i:24] = max(f[i], 0.0f);
}
)"));
  EXPECT_EQ(program.to_string(), R"(program {
  param x: float32[6, 4];
  stage f[i:24] = x[i % 6, i / 6];
  result y[i:24] = max(f[i], 0.0f);
}
)");
}

/// What data decides is no layout.
TEST(Transform, AnArrayThatIndexesItselfIsNotMoved) {
  const Program program = parsed(R"(program {
  param n: int32[4];
  stage t[i:4] = n[3 - i];
  stage u[i:4] = t[min(max(t[i], 0), 3)];
  result y[i:4] = u[i] + 1;
}
)");
  EXPECT_TRUE(equal(cancel_layouts(program), program));
}

/// Indices that double with each move are not joined without end.
TEST(Transform, JoinedIndicesStayReadable) {
  std::string text = "program { param x: float32[8]; stage s0[i:8] = x[i]; ";
  for (int k = 1; k < 60; ++k) text += fmt::format("stage s{}[i:8] = s{}[(i + i) % 8]; ", k, k - 1);
  const Program before = parsed(text + "result y[i:8] = s59[i]; }");
  const Program after = cancel_layouts(before);
  EXPECT_LT(after.stages.size(), 20U);
  EXPECT_LT(after.to_string().size(), 100000U);
  EXPECT_EQ(values(after, {counted({8}, 3)}), values(before, {counted({8}, 3)}));
}

TEST(Transform, Refusals) {
  const Program program = parsed(R"(program {
  param A: float32[4, 6];
  stage s[i:4, j:6] = A[i, j] * 2.0f;
  stage t[i:4, j:6] = s[i, j] + A[i, j];
  result y[i:4, j:6] = t[i, j];
}
)");
  EXPECT_THAT(lift_stage(program, "y").status().message(), HasSubstr("is a result"));
  EXPECT_THAT(lift_stage(program, "z").status().message(), HasSubstr("no stage z"));
  EXPECT_THAT(lift_result(program, "t").status().message(), HasSubstr("no result t"));
  EXPECT_THAT(lift_result(parsed("program { param A: float32[2]; stage s[i:2] = A[i]; "
                                 "result y[i:2] = s[i] * 2.0f; }"),
                          "y")
                  .status()
                  .message(),
              HasSubstr("does not move the elements of one stage"));
  // Values that are missing cannot be folded; the program stays.
  Program constant = program;
  constant.buffers[0].is_constant = true;
  auto folded = fold_constants(constant);
  ASSERT_TRUE(folded.ok());
  EXPECT_TRUE(equal(*folded, constant));
}

TEST(Simplify, BlocksTakenApartAndPutTogether) {
  const std::vector<Axis> axes{{"i", 4}, {"j", 8}, {"n", 40}};
  const auto simplified = [&](const Term& term) { return term_to_string(simplify(term, axes)); };
  const Term i = var("i"), j = var("j"), n = var("n"), free = var("free");
  EXPECT_EQ(simplified((i * 8 + j) / 8), "i");
  EXPECT_EQ(simplified((i * 8 + j) % 8), "j");
  EXPECT_EQ(simplified((j + i * 16) / 8), "i * 2");
  EXPECT_EQ(simplified(n / 8 * 8 + n % 8), "n");
  EXPECT_EQ(simplified((n % 16) % 8), "n % 8");
  EXPECT_EQ(simplified(n / 40), "0");
  EXPECT_EQ(simplified(min(max(n, 0), 39)), "n");
  EXPECT_EQ(simplified(n / 32 * 2 + n / 16 % 2), "n / 16");
  EXPECT_EQ(simplified(n / 32 * 32 + n / 16 % 2 * 16), "n / 16 * 16");
  EXPECT_EQ(simplified((n / 32 * 2 + n / 16 % 2) * 16 + n % 16), "n");
  EXPECT_EQ(simplified(n / 4 / 8), "n / 32");
  EXPECT_EQ(simplified((n * 4 + i) / 8), "n / 2");
  EXPECT_EQ(simplified((n * 4 + i) % 8), "n % 2 * 4 + i");
  EXPECT_EQ(simplified((8 * i + j) / 8), "i");
  // What may be false stays.
  EXPECT_EQ(simplified(n / 32 * 2 + n / 8 % 2), "n / 32 * 2 + n / 8 % 2");
  EXPECT_EQ(simplified((n * 4 + j) / 8), "(n * 4 + j) / 8");
  EXPECT_EQ(simplified((i * 8 + n) % 8), "n % 8");
  EXPECT_EQ(simplified((i * 6 + j) / 8), "(i * 6 + j) / 8");
  EXPECT_EQ(simplified((i * 8 + free) / 8), "i + free / 8");
  EXPECT_EQ(simplified(min(n, 38)), "min(n, 38)");
}

TEST(Transform, APositionThatIsLoadedBecomesAStage) {
  Program program = parsed(R"(program {
  param x: float32[4, 32];
  param p: int64[4, 64];
  result y[i:4, j:64] = x[i, max(min(int32(p[i, j]), 31), 0)];
}
)");
  EXPECT_EQ(stage_index(program, "y"), "y_at");
  EXPECT_EQ(program.to_string(), R"(program {
  param x: float32[4, 32];
  param p: int64[4, 64];
  stage y_at[i:4, j:64] = max(min(int32(p[i, j]), 31), 0);
  result y[i:4, j:64] = x[i, y_at[i, j]];
}
)");
  // Rows of a table lie along the innermost axis, and a sum is no element.
  for (const char* value :
       {"x[j / 16, max(min(int32(p[i, 0]), 31), 0)]", "x[max(min(int32(p[i, j]), 3), 0), j / 2]",
        "x[i, max(min(int32(p[i, j]), 31), 0)] + 1.0f"}) {
    Program other =
        parsed(std::string("program {\n  param x: float32[4, 32];\n  param p: int64[4, 64];\n") +
               "  result y[i:4, j:64] = " + value + ";\n}\n");
    const std::string before = other.to_string();
    EXPECT_EQ(stage_index(other, "y"), std::nullopt) << value;
    EXPECT_EQ(other.to_string(), before);
  }
}

TEST(Evaluate, SaysWhatIsOutOfPlace) {
  const Tensor x = counted({4}, 0);
  const auto failure = [&](const std::string& body) {
    auto results = evaluate(parsed("program {\n  param x: float32[4];\n" + body + "\n}\n"), {{x}});
    EXPECT_FALSE(results.ok());
    return results.ok() ? "" : results.status().to_string();
  };
  EXPECT_THAT(failure("result y[i:5] = x[i];"), HasSubstr("index 4 of 4 in dimension 0 of x"));
  EXPECT_THAT(failure("result y[i:3]: float32;\nupdate y[r] = set(r:4) x[r];"),
              HasSubstr("y is written at 3 of 3"));
  EXPECT_THAT(failure("result y[i:4] = extern \"none\"(x): float32;"),
              HasSubstr("no external function 'none'"));
  EXPECT_THAT(failure("const c: float32[4];\nresult y[i:4] = c[i];"), HasSubstr("for c"));
}

}  // namespace
}  // namespace collage::tensor_program
