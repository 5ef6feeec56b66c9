#include "tensor_program/checked_term.h"

namespace collage::tensor_program {
namespace {

bool takes(TermOp op, DType dtype) {
  switch (op) {
    case TermOp::kAnd:
    case TermOp::kOr:
    case TermOp::kNot:
      return dtype == DType::kBool;
    case TermOp::kAdd:
    case TermOp::kSubtract:
    case TermOp::kMultiply:
    case TermOp::kDivide:
    case TermOp::kMin:
    case TermOp::kMax:
    case TermOp::kNegate:
    case TermOp::kAbs:
      return dtype != DType::kBool;
    case TermOp::kModulo:
      return is_integer(dtype);
    case TermOp::kBits:
      return dtype == DType::kFloat32;
    default:
      return op < TermOp::kExp || is_float(dtype);
  }
}

}  // namespace

Result<Term> checked_term(TermOp op, std::vector<Term> args) {
  for (const TermSpelling& spelling : term_spellings()) {
    if (spelling.op != op) continue;
    if (args.size() != spelling.arity)
      return bad_model("{} of {} arguments", spelling.text, args.size());
    const size_t first = op == TermOp::kSelect ? 1 : 0;
    DType dtype = args[first].dtype();
    for (size_t i = first + 1; i < args.size(); ++i) {
      if (args[i].dtype() == dtype || args[i]->op == TermOp::kConstant) continue;
      if (args[first]->op != TermOp::kConstant)
        return bad_model("{} of {} and {}", spelling.text, dtype_name(dtype),
                         dtype_name(args[i].dtype()));
      dtype = args[i].dtype();
    }
    if (!takes(op, dtype)) return bad_model("{} of {}", spelling.text, dtype_name(dtype));
    if (first == 1 && args[0].dtype() != DType::kBool)
      return bad_model("{} by {}", spelling.text, dtype_name(args[0].dtype()));
  }
  return make_term(op, std::move(args));
}

}  // namespace collage::tensor_program
