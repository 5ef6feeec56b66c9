// Functions of calls in script, which fill buffers that they are given or have made, as graph
// functions:
//
//   def main(x: T.Buffer((128, 128)), out: T.Buffer((128, 128))):
//       w = T.alloc_const(shape=(128, 128))
//       h = T.alloc_stack((128, 128))
//       call_packed(matmul, x, w, h)
//       call_packed(matmul, h, w, out)
//
// What a call fills stands behind what it reads: as many as the definition says, or, of a label,
// the last ones that nothing has filled yet. Parameters that are filled are results, and stand
// last.
#pragma once

#include "frontend/script/script_graph.h"
#include "tensor_program/external_call.h"

namespace collage::tensor_program {

/// Whether the function, whose '(' is the current token, consists of calls; stays there.
Result<bool> consists_of_calls(TextReader& reader, const Token& def);

/// Reads the function from its '(' on; its `def` is `start`. What it calls is defined.
Result<Function> read_calls(ScriptModule& module, const Token& start);

/// Defines the external function of a label where it is first called, and returns it.
Result<Expr> defined_external(ScriptModule& module, ExternalDeclaration declaration);

}  // namespace collage::tensor_program
