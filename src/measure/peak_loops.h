// Loops that do nothing but what a machine's peak is made of: multiply-adds on registers, and bytes
// between registers and a buffer. Each is compiled for the widest vectors that the processor has.
#pragma once

#include <cstddef>

namespace collage {

struct ArithmeticLoop {
  // Null: this processor has no such instruction. Gives a number that depends on all of them.
  float (*run)(int rounds) = nullptr;
  double operations_per_round = 0;  // a multiply-add counts as two
};
ArithmeticLoop float32_loop();
ArithmeticLoop bfloat16_loop();  // products of bfloat16 in vectors, added up in float32
ArithmeticLoop int16_loop();     // of 16-bit integers in 32
ArithmeticLoop int8_loop();      // of 8-bit integers in 32
// Whether that is not the fastest: there is a matrix unit for them.
bool has_int8_matrix_unit();

// `bytes` is a multiple of 512. Each passes over the buffer once; copying reads its first half and
// writes its second, which together are as many bytes.
long long read_buffer(const void* buffer, size_t bytes);
void write_buffer(void* buffer, size_t bytes);
void copy_buffer(void* buffer, size_t bytes);

}  // namespace collage
