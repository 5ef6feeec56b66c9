#include "tensor_program/script/script_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "tensor_program/call.h"
#include "tensor_program/constant_values.h"
#include "tensor_program/program_text.h"
#include "tensor_program/script/script_loops.h"

namespace collage::tensor_program {
namespace {

struct ScriptArray {
  TensorType type;
  std::string memory;  // its scope
  Token place;
  bool is_param = false;
};

class ProgramReader {
 public:
  ProgramReader(TextReader& reader, const ScriptScope& scope) : reader_(reader) {
    scope_.numbers = scope.numbers;
    scope_.array = [this](const std::string& name) -> std::optional<DType> {
      const auto found = arrays_.find(name);
      if (found == arrays_.end()) return std::nullopt;
      if (program_.find_stage(name) == nullptr) read_.insert(name);
      return found->second.type.dtype;
    };
  }

  /// From '(' on.
  Result<Program> read(const Token& start) {
    TRY(reader_.expect("("));
    while (!reader_.is(")")) {
      TRY(param());
      if (!TRY(reader_.accept(","))) break;
    }
    TRY(reader_.expect(")"));
    if (TRY(reader_.accept("->"))) TRY(reader_.expect("None"));
    TRY(read_block(reader_, start.place.column, [&] { return statement(); }));
    settle(nullptr);
    return finished(start);
  }

 private:
  Status declare(const Token& place, ScriptArray array) {
    array.place = place;
    if (!arrays_.emplace(place.text, std::move(array)).second)
      return at(place, bad_model("{} stands twice", place.text));
    return {};
  }

  Status param() {
    const Token place = reader_.token();
    params_.push_back(TRY(read_name(reader_, "a parameter")));
    TRY(reader_.expect(":"));
    if (is_of(reader_, "T", "handle")) {
      handles_.insert(place.text);
      return reader_.step();
    }
    if (!is_of(reader_, "T", "Buffer")) return reader_.expected("T.Buffer or T.handle");
    TRY(reader_.step());
    ScriptArray array;
    array.is_param = true;
    array.type = TRY(read_array_type(reader_, scope_, &array.memory));
    return declare(place, std::move(array));
  }

  Status statement() {
    loops_.clear();
    has_init_ = assigned_ = false;
    if (TRY(reader_.accept("pass"))) return {};
    if (is_of(reader_, "T", "func_attr")) {
      attrs_place_ = reader_.token();
      TRY(reader_.step());
      TRY(reader_.expect("("));
      attrs_ = TRY(read_attrs(reader_));
      return reader_.expect(")");
    }
    if (reader_.is(Token::Kind::kName) && TRY(followed_by(reader_, "="))) return definition();
    return inside();
  }

  /// A = T.match_buffer(…), T.alloc_buffer(…) or T.allocate_const(…)
  Status definition() {
    const Token place = TRY(take(reader_));
    TRY(reader_.expect("="));
    ScriptArray array;
    if (is_of(reader_, "T", "match_buffer")) {
      TRY(reader_.step());
      TRY(reader_.expect("("));
      const Token handle = reader_.token();
      if (handles_.erase(TRY(read_name(reader_, "a parameter"))) == 0)
        return at(handle, bad_model("{} is no T.handle that is left", handle.text));
      TRY(reader_.expect(","));
      array.is_param = true;
      array.type = TRY(read_array_type_to(")", reader_, scope_, &array.memory));
      std::replace(params_.begin(), params_.end(), handle.text, place.text);
    } else if (is_of(reader_, "T", "allocate_const")) {
      TRY(reader_.step());
      Buffer buffer;
      buffer.name = place.text;
      buffer.is_constant = true;
      for (const std::string_view word : {"(", "shape", "="}) TRY(reader_.expect(word));
      buffer.type.shape = TRY(read_shape(reader_, scope_));
      for (const std::string_view word : {",", "dtype", "="}) TRY(reader_.expect(word));
      const DType dtype = buffer.type.dtype = TRY(read_dtype(reader_));
      for (const std::string_view word : {",", "data", "=", "["}) TRY(reader_.expect(word));
      const std::vector<Term> elements =
          TRY(reader_.list("]", [&] { return read_constant(reader_, scope_, dtype); }));
      TRY(reader_.expect(")"));
      buffer.value = TRY(at(place, tensor_of(place.text, buffer.type, elements)));
      array.type = buffer.type;
      program_.buffers.push_back(std::move(buffer));
    } else if (is_of(reader_, "T", "alloc_buffer") || is_of(reader_, "T", "alloc")) {
      TRY(reader_.step());
      array.type = TRY(read_array_type(reader_, scope_));
    } else {
      return reader_.expected("T.match_buffer, T.alloc_buffer or T.allocate_const");
    }
    return declare(place, std::move(array));
  }

  /// A statement inside loops and blocks; a nest of them assigns one array.
  Status inside() {
    const Token start = reader_.token();
    if (start.kind == Token::Kind::kString || is_of(reader_, "T", "reads") ||
        is_of(reader_, "T", "writes")) {  // documentation
      do TRY(reader_.step());
      while (!end_of_line(reader_).ok());
      return {};
    }
    const auto nested = [&] { return inside(); };
    if (start.is("with")) {
      TRY(reader_.step());
      const bool block = is_of(reader_, "T", "block");
      if (!block && !is_of(reader_, "T", "init")) return reader_.expected("T.block or T.init");
      TRY(reader_.step());
      TRY(reader_.expect("("));
      if (block && reader_.is(Token::Kind::kString)) TRY(reader_.step());
      TRY(reader_.expect(")"));
      if (block && (has_init_ || assigned_)) return second(start);
      return read_block(reader_, start.place.column, [&] { return block ? nested() : init(); });
    }
    if (start.is("for")) {
      if (has_init_ || assigned_) return second(start);
      TRY(loops_.read());
      return read_block(reader_, start.place.column, nested);
    }
    if (start.kind == Token::Kind::kName &&
        (TRY(followed_by(reader_, "=")) || TRY(followed_by(reader_, ","))))
      return loops_.read_axes();
    if (assigned_) return second(start);
    assigned_ = true;
    return assign();
  }

  static Status second(const Token& place) {
    return at(place, unsupported("a nest of loops holds one block, which assigns one array"));
  }

  /// The array of NAME[…], and then its indices.
  Result<ScriptArray> target() {
    const Token here = reader_.token();
    const auto found = arrays_.find(TRY(read_name(reader_, "an assignment to X[…]")));
    if (found == arrays_.end()) return at(here, bad_model("there is no {} above", here.text));
    if (program_.find_buffer(here.text) != nullptr)
      return at(here, bad_model("{} is a constant", here.text));
    return found->second;
  }
  Result<std::vector<Term>> indices(const ScriptArray& array) {
    const Token here = reader_.token();
    TRY(reader_.expect("["));
    std::vector<Term> found;
    if (reader_.is("(") && TRY(followed_by(reader_, ")"))) {  // x[()]
      TRY(reader_.step());
      TRY(reader_.step());
      TRY(reader_.expect("]"));
    } else {
      found = TRY(reader_.list("]", [&] { return read_term(reader_, scope_); }));
    }
    if (found.size() == array.type.shape.size()) return found;
    return at(here,
              bad_model("{} indices of {} dimensions", found.size(), array.type.shape.size()));
  }

  Result<Term> value(DType dtype) {
    const Token here = reader_.token();
    Term read = TRY(read_term(reader_, scope_));
    if (read->op == TermOp::kConstant && is_float(read.dtype()) <= is_float(dtype))
      read = constant_as(read, dtype);
    if (read.dtype() == dtype) return read;
    return at(here, bad_model("a {} for an element that is {}", dtype_name(read.dtype()),
                              dtype_name(dtype)));
  }

  /// A stage of what nothing wrote before; its axes have the loops' names.
  Status begin(const Token& place, const ScriptArray& array, const PlainLoops& plain) {
    if (read_.count(place.text) != 0) return unwritten(place);
    settle(nullptr);
    Stage stage;
    stage.name = place.text;
    stage.dtype = array.type.dtype;
    stage.is_result = array.is_param;
    stage.scope = array.memory;
    stage.axes = numbered_axes("i", array.type.shape);
    for (size_t d = 0; d < plain.size(); ++d)
      if (plain[d] != nullptr)
        stage.axes[d].name = plain[d]->name;
      else
        while (loops_.find(stage.axes[d].name) != nullptr) stage.axes[d].name += "_";
    written_.emplace(place.text, place);
    program_.stages.push_back(std::move(stage));
    return {};
  }

  static Status unwritten(const Token& place) {
    return at(place, bad_model("{} is read before it is written: with T.init() it starts from "
                               "something",
                               place.text));
  }

  /// What the last stage starts from is its value, unless its first update starts from it anyway.
  void settle(const Update* first) {
    if (!start_.defined()) return;
    Stage& stage = program_.stages.back();
    if (first == nullptr ||
        !same(start_, first->combine == Combine::kSet ? zero(stage.dtype)
                                                      : neutral(first->combine, stage.dtype)))
      stage.value = start_;
    start_ = {};
  }

  /// Below `with T.init():`
  Status init() {
    const Token place = reader_.token();
    if (has_init_ || assigned_) return second(place);
    has_init_ = true;
    const ScriptArray array = TRY(target());
    if (program_.find_stage(place.text) != nullptr)
      return at(place, bad_model("{} is written before its T.init", place.text));
    const std::vector<Term> found = TRY(indices(array));
    const PlainLoops plain = loops_.plain(found, array.type.shape);
    if (std::count(plain.begin(), plain.end(), nullptr) != 0)
      return at(place, unsupported("T.init of elements that are not all of {}", place.text));
    TRY(reader_.expect("="));
    const Term start = TRY(value(array.type.dtype));
    TRY(begin(place, array, plain));
    start_ = start;
    return {};
  }

  Status assign() {
    const Token place = reader_.token();
    const ScriptArray array = TRY(target());
    const Lexer::Position behind = reader_.position();
    Update update;
    update.at = TRY(indices(array));
    const PlainLoops plain = loops_.plain(update.at, array.type.shape);
    const bool fresh = program_.find_stage(place.text) == nullptr;
    const bool whole =
        std::count(plain.begin(), plain.end(), nullptr) == 0 && plain.size() == loops_.size();
    if (fresh && whole && TRY(reader_.accept("="))) {
      const Term all = TRY(value(array.type.dtype));
      TRY(begin(place, array, plain));
      program_.stages.back().value = all;
      return {};
    }
    if (fresh) {
      TRY(begin(place, array, plain));
      start_ = zero(array.type.dtype);
    }
    const Stage& stage = program_.stages.back();
    if (stage.name != place.text)
      return at(place, unsupported("blocks that write {} follow one another, and {} is in between",
                                   place.text, stage.name));
    update.over = loops_.name_for_update(stage, update.at, plain);
    TRY(reader_.seek(behind));
    update.at = TRY(indices(array));
    TRY(updated_value(stage, update));
    const std::vector<std::string> loads = loaded_names(update.value);
    if (fresh && (update.combine != Combine::kSet ||
                  std::count(loads.begin(), loads.end(), place.text) != 0))
      return unwritten(place);
    settle(&update);
    program_.stages.back().updates.push_back(std::move(update));
    return {};
  }

  /// += term, *= term, or = term, which may combine the element with another.
  Status updated_value(const Stage& stage, Update& update) {
    if (TRY(reader_.accept("+="))) {
      update.combine = Combine::kSum;
    } else if (TRY(reader_.accept("*="))) {
      update.combine = Combine::kProduct;
    } else {
      TRY(reader_.expect("="));
    }
    update.value = TRY(value(stage.dtype));
    if (update.combine != Combine::kSet) return {};
    const Term own = load(stage.name, stage.dtype, update.at);
    const TermOp op = update.value->op;
    for (const auto& [combining, combine] :
         {std::pair(TermOp::kAdd, Combine::kSum), std::pair(TermOp::kMultiply, Combine::kProduct),
          std::pair(TermOp::kMax, Combine::kMax), std::pair(TermOp::kMin, Combine::kMin)}) {
      if (op != combining) continue;
      const Term first = update.value->args[0], second = update.value->args[1];
      if (!same(first, own) && !same(second, own)) continue;
      update.combine = combine;
      update.value = same(first, own) ? second : first;
      break;
    }
    return {};
  }

  /// Parameters become buffers, in front of the constants.
  Status order_buffers() {
    std::vector<Buffer> buffers;
    std::vector<std::string> results;
    for (const std::string& name : params_) {
      const ScriptArray& array = arrays_.at(name);
      if (program_.find_stage(name) != nullptr) {
        results.push_back(name);
      } else if (!results.empty()) {
        return at(array.place, bad_model("{} is not written and stands behind a result", name));
      } else {
        buffers.push_back({name, array.type});
        buffers.back().scope = array.memory;
      }
    }
    if (results != program_.results())
      return at(arrays_.at(results[0]).place,
                unsupported("results are written in the order of the parameters"));
    buffers.insert(buffers.end(), program_.buffers.begin(), program_.buffers.end());
    program_.buffers.swap(buffers);
    const AttrValue* order = attrs_.find("buffers");
    if (order == nullptr || !std::holds_alternative<std::string>(*order)) return {};
    buffers.clear();
    const std::vector<Token> names = tokens_of(std::get<std::string>(*order));
    for (const Token& name : names)
      if (const Buffer* buffer = program_.find_buffer(name.text)) buffers.push_back(*buffer);
    if (buffers.size() != program_.buffers.size() || buffers.size() + 1 != names.size())
      return at(attrs_place_, bad_model("\"buffers\" lists others than there are"));
    program_.buffers.swap(buffers);
    return {};
  }

  Result<Program> finished(const Token& start) {
    for (const std::string& name : handles_)
      return at(start, bad_model("{} has no T.match_buffer", name));
    for (const auto& [name, array] : arrays_)
      if (!array.is_param && program_.find_stage(name) == nullptr &&
          program_.find_buffer(name) == nullptr)
        return at(array.place, bad_model("nothing writes {}", name));
    TRY(order_buffers());
    std::string where;
    Status legal = verify(program_, &where);
    if (legal.ok()) legal = check_callable(program_, &where);
    const auto written = written_.find(where);
    if (!legal.ok()) return at(written != written_.end() ? written->second : start, legal);
    const AttrValue* schedule = attrs_.find("schedule");
    if (schedule == nullptr) return std::move(program_);
    if (!std::holds_alternative<std::string>(*schedule))
      return at(attrs_place_, bad_model("\"schedule\" is text"));
    Result<Program> scheduled = parse_declarations(
        declarations_text(program_) + "schedule {" + std::get<std::string>(*schedule) + "}", {},
        check_callable);
    if (scheduled) return scheduled;
    return at(attrs_place_, bad_model("\"schedule\": {}", scheduled.status().message()));
  }

  TextReader& reader_;
  ScriptScope scope_;
  Program program_;
  std::vector<std::string> params_;  // names of arrays, or of handles
  std::set<std::string> handles_;    // for which no buffer stands yet
  std::map<std::string, ScriptArray> arrays_;
  std::set<std::string> read_;  // before they were written
  std::map<std::string, Token> written_;
  Attrs attrs_;
  Token attrs_place_;
  ScriptLoops loops_{reader_, scope_};  // around the block
  bool has_init_ = false, assigned_ = false;
  Term start_;  // of the last stage, until its first update is known
};

}  // namespace

Result<Program> read_program(TextReader& reader, const Token& start, const ScriptScope& scope) {
  return ProgramReader(reader, scope).read(start);
}

}  // namespace collage::tensor_program
