// Makes one module over symbols of what makes a module for each size: an importer, or a function of
// the sizes in Python or C++ that builds one.
//
//   make({n: 4})   def @main(%x: Tensor[(4, 8), float32]) { reshape(%x, newshape=[32]) }
//   make({n: 6})   def @main(%x: Tensor[(6, 8), float32]) { reshape(%x, newshape=[48]) }
//   …              def @main(%x: Tensor[(n, 8), float32]) { reshape(%x, newshape=[8 * n]) }
//
// Integers of types and attributes that differ between sizes become the terms that they are at all
// sizes that were looked at (fitted_extent.h). Modules that differ in more than such integers, in
// which calls they make or what constants hold, are no family; sizes below 4 may make other calls,
// if results' types are the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/script/symbolic_module.h"

namespace collage::tensor_program {

/// May fail for sizes that do not fit, as a convolution of an image that is too small.
using MakeModule = std::function<Result<Module>(const Symbols& sizes)>;

/// Each symbol is to be a dimension of @main's parameters alone. kUnsupported names what differs,
/// and at which sizes; else what `make` says of the smallest sizes.
Result<SymbolicModule> generalise(const std::vector<std::string>& symbols, const MakeModule& make);

}  // namespace collage::tensor_program
