// Tensors of Python's libraries and Collage's, without copies: what comes in is viewed in place,
// what goes out is owned by the array that is made of it.
#pragma once

#include <collage/collage.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

namespace collage::python {

namespace nb = nanobind;

// Throws collage.Error.
[[noreturn]] void raise(const Status& status);

// What `body` gives, without the interpreter's lock meanwhile.
template <typename Body>
auto unlocked(const Body& body) {
  const nb::gil_scoped_release released;
  return body();
}
// Raises what has failed.
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <typename T>
T value_of(Result<T>&& result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

// What Python raised, as "ValueError: why", for where no interpreter is. With its lock held.
inline std::string raised_text(const nb::python_error& raised) {
  return nb::cast<std::string>(raised.type().attr("__name__")) + ": " +
         nb::str(raised.value()).c_str();
}

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using WritableArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

// A view of an array as an input: NumPy's, or whatever speaks DLPack. One that is not contiguous is
// copied into `array`, which must outlive the tensor. TypeError: no such thing; collage.Error: its
// dtype is not the input's, or its shape where that is fixed.
Tensor view_input(nb::handle object, const TensorInfo& info, Array& array);
// A copy of an array of any shape and of a dtype that Collage has.
Tensor copy_of(nb::handle object, const std::string& role);
// The same as an output, which must be contiguous and writable.
Tensor view_output(nb::handle object, const TensorInfo& info, WritableArray& array);

enum class Library { kNumPy, kTorch };
// Whose arrays a program gives that was given this one.
Library library_of(nb::handle object);
nb::object array_of(const Tensor& tensor, Library library);
// NumPy's, of what may not be changed.
nb::object read_only_array_of(const Tensor& tensor);

}  // namespace collage::python
