#include "ops/cases.h"

#include "ops/cases/cases_list.h"

namespace collage {

std::string OpCase::to_string() const {
  std::string text = op + (as_tuple ? "((" : "(");
  for (size_t i = 0; i < args.size(); ++i)
    text += (i ? ", " : "") + args[i].type.to_string() + (args[i].is_constant ? " const" : "");
  text += as_tuple ? "))" : ")";
  for (const auto& [name, value] : attrs.entries())
    text += " " + name + "=" + attr_to_string(value);
  return text;
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    add_convolution_cases(all);
    add_product_cases(all);
    add_window_cases(all);
    add_elementwise_cases(all);
    add_normalisation_cases(all);
    add_recurrent_cases(all);
    add_sample_cases(all);
    add_reduction_cases(all);
    add_shape_cases(all);
    add_index_cases(all);
    add_quantised_cases(all);
    return all;
  }();
  return cases;
}

std::vector<OpCase> op_cases(std::string_view op) {
  std::vector<OpCase> result;
  for (const OpCase& op_case : op_cases())
    if (op_case.op == op) result.push_back(op_case);
  return result;
}

Result<OpCaseFunction> build_case(const OpCase& op_case, uint64_t seed) {
  OpCaseFunction built;
  std::vector<Expr> args, params;
  for (size_t i = 0; i < op_case.args.size(); ++i) {
    const OpArg& arg = op_case.args[i];
    Tensor value = random_tensor(arg.type, seed * 1009 + i, arg.range);
    if (arg.is_constant) {
      args.push_back(make_constant(std::move(value)));
    } else {
      params.push_back(make_var(fmt::format("x{}", i), arg.type));
      args.push_back(params.back());
      built.inputs.push_back(std::move(value));
    }
  }
  if (op_case.as_tuple) args = {make_tuple(std::move(args))};
  Expr body = TRY(make_call(op_case.op, std::move(args), op_case.attrs));
  built.function = make_function(std::move(params), std::move(body));
  return built;
}

}  // namespace collage
