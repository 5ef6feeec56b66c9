// Code generation as a pass from module to module, for toolchains that one brings (TVM's BYOC):
//
//   @conv_relu, a kernel of onednn       extern @conv_relu(…) -> … = "conv_relu_lib";
//                                   =>   external_mods["conv_relu_lib"] = ("onednn", …, code);
//   calls of @conv_relu                  the same calls
#pragma once

#include <collage/collage.h>

#include "ir/module.h"
#include "partition/gather.h"

namespace collage {

// Compiles each global function that is a kernel (Primitive) of the spec's toolchain (Compiler), by
// `options` that name that toolchain, and attaches what it became under its global_symbol, or one
// like it that nothing else has. kUnsupported names the function that the toolchain refuses, or
// whose kernel cannot be saved.
Result<Module> generate_code(const Module& module, const PartitionSpec& spec,
                             const ProgramOptions& options);

}  // namespace collage
