#include "frontend/script/script_calls.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

struct CallBuffer {
  TensorType type;
  Expr value = nullptr;  // none yet
  bool is_param = false, is_filled = false;
};

class CallsReader {
 public:
  CallsReader(ScriptModule& module, const Token& start)
      : module_(module), reader_(module.reader), start_(start) {}

  Result<Function> read() {
    TRY(reader_.expect("("));
    const std::vector<std::string> names = TRY(reader_.list(")", [&] { return param(); }));
    if (TRY(reader_.accept("->"))) TRY(reader_.expect("None"));
    TRY(read_block(reader_, start_.place.column, [&] { return statement(); }));
    std::vector<Expr> params, results;
    for (const std::string& name : names) {
      const CallBuffer& buffer = buffers_.at(name);
      if (!buffer.is_filled && !results.empty())
        return at(start_, bad_model("{} is not filled and stands behind a result", name));
      (buffer.is_filled ? results : params).push_back(buffer.value);
    }
    if (results.empty()) return at(start_, bad_model("no parameter is filled"));
    const Function made =
        make_function(params, results.size() == 1 ? results[0] : make_tuple(std::move(results)));
    module_.calls[made] = std::move(calls_);
    return made;
  }

 private:
  Status declare(const Token& place, CallBuffer buffer) {
    if (!buffers_.emplace(place.text, std::move(buffer)).second)
      return at(place, bad_model("{} stands twice", place.text));
    return {};
  }

  Result<std::string> param() {
    const Token place = reader_.token();
    const std::string name = TRY(read_name(reader_, "a parameter"));
    TRY(reader_.expect(":"));
    if (word(reader_.token()) != "Buffer") return reader_.expected("T.Buffer");
    TRY(reader_.step());
    const TensorType type = TRY(read_array_type(reader_, module_.scope));
    TRY(declare(place, {type, make_var(name, type), true}));
    return name;
  }

  Status statement() {
    const Token place = reader_.token();
    if (place.kind == Token::Kind::kString) return skip_line(reader_);  // documentation
    if (TRY(reader_.accept("pass"))) return {};
    if (word(place) == "call_packed" && TRY(followed_by(reader_, "("))) return call(place);
    TRY(read_name(reader_, "call_packed, T.alloc_const or T.alloc_stack"));
    TRY(reader_.expect("="));
    const std::string form(word(reader_.token()));
    if (form == "alloc_const") {
      const Token start = reader_.token();
      TRY(enter(reader_));
      const Expr value = TRY(read_script_constant(module_, start));
      return declare(place, {value->tensor_type(), value});
    }
    if (form != "alloc_stack" && form != "alloc_buffer" && form != "alloc")
      return reader_.expected("T.alloc_const or T.alloc_stack");
    TRY(reader_.step());
    return declare(place, {TRY(read_array_type(reader_, module_.scope))});
  }

  /// call_packed(matmul, x, w, out)
  Status call(const Token& start) {
    TRY(enter(reader_));
    const Token target = TRY(take(reader_));
    std::vector<std::pair<Token, CallBuffer*>> given;
    while (TRY(reader_.accept(","))) {
      const Token place = TRY(take(reader_));
      const auto found = buffers_.find(place.text);
      if (found == buffers_.end()) return at(place, bad_model("there is no {} here", place.text));
      given.emplace_back(place, &found->second);
    }
    TRY(reader_.expect(")"));
    Expr callee;
    if (target.kind == Token::Kind::kString) {
      callee = TRY(at(target, labelled(target.text, given)));
    } else {
      const auto known = module_.globals.find(target.text);
      if (known == module_.globals.end())
        return at(target, bad_model("there is no {} in the module", target.text));
      callee = known->second;
    }
    const Type& result = callee->type().result();
    const std::vector<TensorType> leaves = result.leaves();
    const size_t taken = callee->type().params().size();
    if (given.size() != taken + leaves.size())
      return at(start, bad_model("{} takes {} and fills {} buffers, not {} in all", target.text,
                                 taken, leaves.size(), given.size()));
    std::vector<Expr> args;
    for (size_t i = 0; i < taken; ++i) {
      if (given[i].second->value == nullptr)
        return at(given[i].first, bad_model("nothing has filled {} yet", given[i].first.text));
      args.push_back(given[i].second->value);
      if (!given[i].second->is_filled) read_.insert(given[i].second);
    }
    const Expr made = TRY(at(start, make_function_call(callee, std::move(args))));
    calls_.push_back(made);
    for (size_t i = 0; i < leaves.size(); ++i) {
      auto& [place, buffer] = given[taken + i];
      if (!(buffer->type == leaves[i]))
        return at(place, bad_model("{} is a {}, and filled with a {}", place.text,
                                   buffer->type.to_string(), leaves[i].to_string()));
      if (buffer->is_param && !buffer->is_filled && read_.count(buffer) != 0)
        return at(place, unsupported("{} is read, and filled later", place.text));
      buffer->is_filled = true;
      buffer->value = result.is_tensor()
                          ? made
                          : TRY(at(start, make_tuple_get_item(made, static_cast<int64_t>(i))));
    }
    return {};
  }

  /// Of a label: it fills the last buffer.
  Result<Expr> labelled(const std::string& label,
                        const std::vector<std::pair<Token, CallBuffer*>>& given) {
    if (given.empty()) return bad_model("the call fills nothing");
    ExternalDeclaration declaration;
    declaration.label = label;
    for (const auto& [place, buffer] : given) declaration.params.emplace_back(buffer->type);
    declaration.result = declaration.params.back();
    declaration.params.pop_back();
    return defined_external(module_, std::move(declaration));
  }

  ScriptModule& module_;
  TextReader& reader_;
  const Token start_;
  std::map<std::string, CallBuffer> buffers_;
  std::set<const CallBuffer*> read_;  // before anything filled them
  std::vector<Expr> calls_;
};

}  // namespace

Result<bool> consists_of_calls(TextReader& reader, const Token& def) {
  const Lexer::Position begin = reader.position();
  bool found = false;
  while (!reader.is(Token::Kind::kEnd) && reader.token().place.column > def.place.column) {
    found = found || word(reader.token()) == "call_packed";
    TRY(reader.step());
  }
  TRY(reader.seek(begin));
  return found;
}

Result<Function> read_calls(ScriptModule& module, const Token& start) {
  return CallsReader(module, start).read();
}

Result<Expr> defined_external(ScriptModule& module, ExternalDeclaration declaration) {
  const std::string label = declaration.label;
  const std::shared_ptr<const AbstractFunction> function =
      TRY(external_function(std::move(declaration)));
  for (const auto& [name, known] : module.module.abstract_functions)
    if (known->kind_name() == "extern" && known->to_text() == function->to_text())
      return module.globals.at(name);
  const std::string name = module.names.fresh(label);
  module.define(name, function);
  return module.globals.at(name);
}

}  // namespace collage::tensor_program
