// Loops that measure a machine's peaks: multiply-adds on registers, and bytes between registers and
// a buffer. Each is compiled for the processor's widest vectors.
#pragma once

#include <cstddef>

namespace collage {

struct ArithmeticLoop {
  // Null: this processor has no such instruction. Returns a number that depends on all of them.
  float (*run)(int rounds) = nullptr;
  double operations_per_round = 0;  // a multiply-add counts as two
};
ArithmeticLoop float32_loop();
ArithmeticLoop bfloat16_loop();  // products of bfloat16 in vectors, added up in float32
ArithmeticLoop int16_loop();     // of 16-bit integers in 32
ArithmeticLoop int8_loop();      // of 8-bit integers in 32
// Returns whether a matrix unit for them is faster.
bool has_int8_matrix_unit();

// `bytes` is a multiple of 512. Each function passes over the buffer once; copying reads its first
// half and writes its second, which together are as many bytes.
long long read_buffer(const void* buffer, size_t bytes);
void write_buffer(void* buffer, size_t bytes);
void copy_buffer(void* buffer, size_t bytes);

}  // namespace collage
