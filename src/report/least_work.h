// The least work of a kernel, which its time is compared with by the machine's peaks
// (report/roofline.h). It is not OpDef::flops, which is the same for every algorithm, but what
// remains of that, by what the variant states (Variant::work):
//
// - taps of a convolution that only see padding, or that see one pixel of a smaller image which was
//   enlarged, need no multiplication of their own; nor do scores that a causal mask hides;
// - Winograd multiplies (m+2)^2 times where m^2 results take 9 m^2;
// - sums of products of bfloat16 parts multiply several times, by another unit;
// - a gather or a slice reads what it gives, a window with gaps what it sees, a kernel in place
//   nothing.
#pragma once

#include <string>

#include "backend/variant.h"
#include "ir/expr.h"

namespace collage {

struct LeastWork {
  // The unit that multiplies: "float32", the vector units' multiply-adds; "bfloat16", "int16" or
  // "int8", the fastest unit that has products of these; "any", unknown outside the library. A
  // function with products of quantised integers always has "int8".
  std::string unit = "float32";
  double operations = 0;                  // of that unit, a multiply-add as two
  double activations = 0, constants = 0;  // bytes; results count as activations
};

LeastWork least_work(const Function& function, const Variant& variant);

// A change of encoding: both sides of it.
LeastWork least_work_of_conversion(const TensorType& type, const Encoding& from,
                                   const Encoding& to);

}  // namespace collage
