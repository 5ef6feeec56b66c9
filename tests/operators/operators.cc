// Operators as a plugin, of the public headers alone: a gated activation, a normalisation with an
// attribute, and one with two results.
#include <collage/operators.h>

COLLAGE_OPERATORS({.name = "test.swiglu",
                   .onnx = "com.example::SwiGlu",
                   .program = R"(program (n, d) {
                     param X: float32[n, 2 * d];
                     result Y[i:n, j:d] = X[i, j] / (1.0f + exp(-X[i, j])) * X[i, d + j];
                   })"},
                  {.name = "test.rms_norm",
                   .onnx = "com.example::RmsNorm",
                   .program = R"(program (n, d, epsilon: float32 = 1e-5) {
                     param X: float32[n, d];
                     param G: float32[d];
                     stage S[i:n] = sum(k:d) X[i, k] * X[i, k];
                     stage R[i:n] = 1.0f / sqrt(S[i] / float32(d) + epsilon);
                     result Y[i:n, j:d] = X[i, j] * R[i] * G[j];
                   })"},
                  {.name = "test.split_at",
                   .onnx = "com.example::SplitAt",
                   .program = R"(program (n, d, at: int64) {
                     param X: float32[n, d];
                     result A[i:n, j:at] = X[i, j];
                     result B[i:n, j:d - at] = X[i, at + j];
                   })",
                   .cases = {{{"n", 3}, {"d", 7}, {"at", 2}}}})
