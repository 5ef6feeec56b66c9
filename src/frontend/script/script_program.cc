#include "frontend/script/script_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/name_supply.h"
#include "tensor_program/call.h"
#include "tensor_program/constant_values.h"
#include "tensor_program/program_text.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

struct ScriptArray {
  Buffer buffer;  // what it is if nothing writes it
  bool is_param = false;
  Token place = {};        // where it is declared, or first written
  bool has_start = false;  // its stage's value is what the first update starts from
};

struct ScriptLoop {
  std::string name;
  int64_t extent = 1;
  char kind = 0;  // of its axis; 0: not said

  bool indexes_stage() const { return kind == 'S' || kind == 0; }
};
/// Of each dimension the loop that is its index and walks all of it; or null.
using PlainLoops = std::vector<const ScriptLoop*>;

/// The axes of a stage that a nest of these loops is the first to write.
std::vector<Axis> axes_of(const std::vector<ScriptLoop>& loops, const PlainLoops& plain,
                          const Shape& shape) {
  NameSupply names;
  for (const ScriptLoop& loop : loops) names.reserve(loop.name);
  std::vector<Axis> axes = numbered_axes("i", shape);
  for (size_t d = 0; d < axes.size(); ++d)
    axes[d].name = plain[d] != nullptr ? plain[d]->name : names.fresh(axes[d].name);
  return axes;
}

/// Makes the loops around an update axes: those of the stage where they index it by the same name,
/// or index a dimension; the others get into `over`, by names that differ from these.
void rename_loops(const std::vector<ScriptLoop>& loops, const PlainLoops& plain, const Stage& stage,
                  Update& update) {
  std::map<std::string, std::string> names;  // of axes, by loops
  std::set<std::string> taken;
  for (const ScriptLoop& loop : loops)
    for (const Axis& axis : stage.axes)
      if (axis.name == loop.name && axis.extent == loop.extent && loop.indexes_stage() &&
          std::any_of(update.at.begin(), update.at.end(),
                      [&](const Term& index) { return depends_on(index, loop.name); }))
        names[loop.name] = *taken.insert(axis.name).first;
  for (size_t d = 0; d < plain.size(); ++d)
    if (plain[d] != nullptr && names.count(plain[d]->name) == 0 &&
        taken.insert(stage.axes[d].name).second)
      names[plain[d]->name] = stage.axes[d].name;
  NameSupply others;
  for (const Axis& axis : stage.axes) others.reserve(axis.name);
  std::vector<Replacement> replacements;
  for (const ScriptLoop& loop : loops) {
    if (names.count(loop.name) == 0) {
      names[loop.name] = others.fresh(loop.name);
      update.over.push_back({names[loop.name], loop.extent});
    }
    replacements.push_back({loop.name, var(names[loop.name])});
  }
  for (Term& index : update.at) index = substitute(index, replacements);
  update.value = substitute(update.value, replacements);
}

class ProgramReader {
 public:
  ProgramReader(TextReader& reader, const ScriptScope& scope) : reader_(reader), scope_(scope) {}

  /// From '(' on.
  Result<Program> read(const Token& start) {
    TRY(reader_.expect("("));
    buffers_ = TRY(reader_.list(")", [&] { return param(); }));
    if (TRY(reader_.accept("->"))) TRY(reader_.expect("None"));
    TRY(read_block(reader_, start.place.column, [&] { return statement(); }));
    TRY(order_buffers(start));
    return finished(start);
  }

 private:
  Status declare(const Token& place, Buffer buffer, bool is_param) {
    buffer.name = place.text;
    scope_.arrays[place.text] = buffer.type.dtype;
    if (!arrays_.emplace(place.text, ScriptArray{std::move(buffer), is_param, place}).second)
      return at(place, bad_model("{} stands twice", place.text));
    return {};
  }

  Result<std::string> param() {
    const Token place = reader_.token();
    const std::string name = TRY(read_name(reader_, "a parameter"));
    TRY(reader_.expect(":"));
    const bool is_handle = word(reader_.token()) == "handle";
    if (!is_handle && word(reader_.token()) != "Buffer")
      return reader_.expected("T.Buffer or T.handle");
    TRY(reader_.step());
    if (is_handle) return name;
    Buffer buffer;
    buffer.type = TRY(read_array_type(reader_, scope_, &buffer.scope));
    TRY(declare(place, std::move(buffer), true));
    return name;
  }

  Status statement() {
    loops_.clear();
    scope_.variables.clear();
    has_init_ = has_assignment_ = false;
    const Token start = reader_.token();
    if (TRY(reader_.accept("pass")) || TRY(accept_symbol(reader_))) return {};
    if (word(start) == "func_attr") {
      attrs_place_ = start;
      TRY(enter(reader_));
      attrs_ = TRY(read_attrs(reader_));
      return reader_.expect(")");
    }
    if (start.kind == Token::Kind::kName && TRY(followed_by(reader_, "="))) return definition();
    return inside();
  }

  /// A = T.match_buffer(…), T.alloc_buffer(…) or T.allocate_const(…)
  Status definition() {
    const Token place = TRY(take(reader_));
    TRY(reader_.expect("="));
    const std::string form(word(reader_.token()));
    Buffer buffer;
    if (form == "match_buffer") {
      TRY(enter(reader_));
      const Token handle = reader_.token();
      const auto param = std::find(buffers_.begin(), buffers_.end(), handle.text);
      if (param == buffers_.end() || arrays_.count(handle.text) != 0)
        return at(handle, bad_model("{} is no T.handle that is left", handle.text));
      *param = place.text;
      TRY(reader_.step());
      TRY(reader_.expect(","));
      buffer.type = TRY(read_array_type_to(")", reader_, scope_, &buffer.scope));
    } else if (form == "allocate_const") {
      TRY(enter(reader_));
      buffer.type = TRY(read_array_type_to("data", reader_, scope_));
      TRY(reader_.expect("="));
      TRY(reader_.expect("["));
      const std::vector<Term> values =
          TRY(reader_.list("]", [&] { return read_constant(reader_, scope_, buffer.type.dtype); }));
      TRY(reader_.expect(")"));
      buffer.is_constant = true;
      buffer.value = TRY(at(place, tensor_of(place.text, buffer.type, values)));
      buffers_.push_back(place.text);
    } else if (form == "alloc_buffer" || form == "alloc") {
      TRY(reader_.step());
      buffer.type = TRY(read_array_type(reader_, scope_));
    } else {
      return reader_.expected("T.match_buffer, T.alloc_buffer or T.allocate_const");
    }
    return declare(place, std::move(buffer), form == "match_buffer");
  }

  /// A statement inside loops and blocks; a nest of them assigns one array.
  Status inside() {
    const Token start = reader_.token();
    if (start.kind == Token::Kind::kString || word(start) == "reads" || word(start) == "writes")
      return skip_line(reader_);  // documentation
    if (start.is("with")) return block(start);
    if (start.is("for")) {
      if (has_init_ || has_assignment_) return second(start);
      TRY(loops());
      return read_block(reader_, start.place.column, [&] { return inside(); });
    }
    if (TRY(followed_by(reader_, "=")) || TRY(followed_by(reader_, ","))) return axes();
    return assign(false);
  }

  /// for i, j in T.grid(4, 8)
  Status loops() {
    TRY(reader_.expect("for"));
    const std::vector<std::string> names =
        TRY(reader_.list("in", [&] { return read_name(reader_, "the name of a loop"); }));
    const Token form = reader_.token();
    const bool is_grid = word(form) == "grid";
    if (!is_grid && word(form) != "range" && word(form) != "serial")
      return reader_.expected("range(…), T.serial(…) or T.grid(…)");
    TRY(enter(reader_));
    std::vector<int64_t> extents =
        TRY(reader_.list(")", [&] { return read_extent(reader_, scope_); }));
    if (!is_grid && extents.size() == 2 && extents[0] == 0) extents.erase(extents.begin());
    if (names.size() != extents.size() || (!is_grid && extents.size() != 1))
      return at(form, bad_model("{} loops of {} extents", names.size(), extents.size()));
    for (size_t i = 0; i < names.size(); ++i) {
      if (find_loop(names[i]) != nullptr)
        return at(form, bad_model("loop {} stands twice", names[i]));
      loops_.push_back({names[i], extents[i]});
      scope_.variables[names[i]] = var(names[i]);
    }
    return {};
  }

  /// vi, vj = T.axis.remap("SR", [i, j]), or vi = T.axis.spatial(16, i)
  Status axes() {
    const std::vector<std::string> names =
        TRY(reader_.list("=", [&] { return read_name(reader_, "the axis of a block"); }));
    const Token form = reader_.token();
    const bool is_remap = word(form) == "axis.remap";
    std::string kinds;
    for (const AxisKind& kind : kAxisKinds)
      if (word(form) == fmt::format("axis.{}", kind.name)) kinds = kind.letter;
    if (kinds.empty() && !is_remap)
      return reader_.expected("T.axis.remap, or T.axis.spatial, reduce or opaque");
    TRY(enter(reader_));
    int64_t extent = 0;
    if (is_remap)
      kinds = TRY(read_string(reader_, "the kinds of axes, such as \"SSR\""));
    else
      extent = TRY(read_extent(reader_, scope_));
    if (names.size() != kinds.size() || kinds.find_first_not_of("SRO") != std::string::npos)
      return at(form, bad_model("{} axes of the kinds \"{}\"", names.size(), kinds));
    for (size_t i = 0; i < names.size(); ++i) {
      TRY(reader_.expect(","));
      if (is_remap && i == 0) TRY(reader_.expect("["));
      const Token place = reader_.token();
      ScriptLoop* loop = find_loop(place.text);
      if (loop == nullptr) return reader_.expected("one of the loops around");
      if (loop->kind != 0) return at(place, bad_model("loop {} has two axes", loop->name));
      if (!is_remap && extent != loop->extent)
        return at(place, bad_model("axis {} of extent {} is no loop of {}", names[i], extent,
                                   loop->extent));
      loop->kind = kinds[i];
      scope_.variables[names[i]] = var(loop->name);
      TRY(reader_.step());
      if (!reader_.is(",") && !reader_.is("]") && !reader_.is(")"))
        return at(reader_.token(), unsupported("an axis that is no loop: splitting and joining "
                                               "loops is the schedule's"));
    }
    if (is_remap) TRY(reader_.expect("]"));
    return reader_.expect(")");
  }

  ScriptLoop* find_loop(std::string_view name) {
    for (ScriptLoop& loop : loops_)
      if (loop.name == name) return &loop;
    return nullptr;
  }

  PlainLoops plain_loops(const std::vector<Term>& indices, const Shape& shape) const {
    PlainLoops found(indices.size(), nullptr);
    for (size_t d = 0; d < indices.size(); ++d)
      for (const ScriptLoop& loop : loops_)
        if (is_variable(indices[d], loop.name) && loop.indexes_stage() && loop.extent == shape[d] &&
            std::count(found.begin(), found.end(), &loop) == 0)
          found[d] = &loop;
    return found;
  }

  /// with T.block("name"): or with T.init():
  Status block(const Token& start) {
    TRY(reader_.step());
    const bool is_init = word(reader_.token()) == "init";
    if (!is_init && word(reader_.token()) != "block") return reader_.expected("T.block or T.init");
    TRY(enter(reader_));
    if (!is_init && reader_.is(Token::Kind::kString)) TRY(reader_.step());
    TRY(reader_.expect(")"));
    if (!is_init && (has_init_ || has_assignment_)) return second(start);
    return read_block(reader_, start.place.column,
                      [&] { return is_init ? assign(true) : inside(); });
  }

  static Status second(const Token& place) {
    return at(place, unsupported("a nest of loops holds one block, which assigns one array"));
  }

  /// NAME[…] = …; what it starts from below T.init.
  Status assign(bool is_init) {
    const Token place = reader_.token();
    if (has_assignment_ || (is_init && has_init_)) return second(place);
    (is_init ? has_init_ : has_assignment_) = true;
    const auto found = arrays_.find(TRY(read_name(reader_, "an assignment to X[…]")));
    if (found == arrays_.end()) return at(place, bad_model("there is no {} above", place.text));
    ScriptArray& array = found->second;
    if (array.buffer.is_constant) return at(place, bad_model("{} is a constant", place.text));
    const auto& [shape, dtype] = array.buffer.type;
    Update update;
    TRY(reader_.expect("["));
    update.at = TRY(read_indices(reader_, scope_));
    if (update.at.size() != shape.size())
      return at(place, bad_model("{} indices of {} dimensions", update.at.size(), shape.size()));
    const PlainLoops plain = plain_loops(update.at, shape);
    const bool all = std::count(plain.begin(), plain.end(), nullptr) == 0;
    if (is_init && !all)
      return at(place, unsupported("T.init of elements that are not all of {}", place.text));
    TRY(assigned_value(place.text, dtype, update));
    if (program_.find_stage(place.text) == nullptr) {
      const std::vector<std::string> loads = loaded_names(update.value);
      if (update.combine != Combine::kSet ||
          std::count(loads.begin(), loads.end(), place.text) != 0)
        return at(place, bad_model("{} is read before it is written: with T.init() it starts from "
                                   "something",
                                   place.text));
      const bool is_value = is_init || (all && plain.size() == loops_.size());
      program_.stages.push_back({.name = place.text,
                                 .dtype = dtype,
                                 .axes = axes_of(loops_, plain, shape),
                                 .value = is_value ? update.value : zero(dtype),
                                 .updates = {},
                                 .is_result = array.is_param,
                                 .scope = array.buffer.scope});
      array.place = place;
      array.has_start = is_init || !is_value;
      if (is_value) return {};
    } else if (is_init) {
      return at(place, bad_model("{} is written before its T.init", place.text));
    }
    Stage& stage = program_.stages.back();
    if (stage.name != place.text)
      return at(place, unsupported("blocks that write {} follow one another, and {} is in between",
                                   place.text, stage.name));
    rename_loops(loops_, plain, stage, update);
    stage.updates.push_back(std::move(update));
    return {};
  }

  /// += term, *= term, or = term, which may combine the element with another.
  Status assigned_value(const std::string& name, DType dtype, Update& update) {
    for (const CombineSpelling& spelling : kCombineSpellings)
      if (update.combine == Combine::kSet && TRY(reader_.accept(spelling.assignment)))
        update.combine = spelling.combine;
    if (update.combine == Combine::kSet) TRY(reader_.expect("="));
    const Token here = reader_.token();
    Term value = TRY(read_term(reader_, scope_));
    if (value->op == TermOp::kConstant && is_float(value.dtype()) <= is_float(dtype))
      value = as_type(value, dtype);
    if (value.dtype() != dtype)
      return at(here, bad_model("a {} for an element that is {}", dtype_name(value.dtype()),
                                dtype_name(dtype)));
    update.value = value;
    if (update.combine != Combine::kSet) return {};
    const Term own = load(name, dtype, update.at);
    for (const CombineSpelling& spelling : kCombineSpellings) {
      if (spelling.op != value->op) continue;
      const bool first = same(value->args[0], own);
      if (!first && !same(value->args[1], own)) continue;
      update.combine = spelling.combine;
      update.value = value->args[first ? 1 : 0];
    }
    return {};
  }

  /// Parameters become buffers, in front of the constants unless attributes say otherwise.
  Status order_buffers(const Token& start) {
    std::vector<std::string> results;
    for (const std::string& name : buffers_) {
      const auto found = arrays_.find(name);
      if (found == arrays_.end()) return at(start, bad_model("{} has no T.match_buffer", name));
      const ScriptArray& array = found->second;
      if (program_.find_stage(name) != nullptr) {
        results.push_back(name);
      } else if (!results.empty() && array.is_param) {
        return at(array.place, bad_model("{} is not written and stands behind a result", name));
      } else {
        program_.buffers.push_back(array.buffer);
      }
    }
    if (results != program_.results())
      return at(start, unsupported("results are written in the order of the parameters"));
    const auto* order = std::get_if<std::string>(attrs_.find("buffers"));
    if (order == nullptr) return {};
    std::vector<Buffer> buffers;
    for (TokenReader names(*order); names.peek().kind != Token::Kind::kEnd;)
      if (const Buffer* buffer = program_.find_buffer(names.next().text))
        buffers.push_back(*buffer);
    if (buffers.size() != program_.buffers.size())
      return at(attrs_place_, bad_model("\"buffers\" lists others than there are"));
    program_.buffers.swap(buffers);
    return {};
  }

  Result<Program> finished(const Token& start) {
    for (const auto& [name, array] : arrays_)
      if (!array.is_param && !array.buffer.is_constant && program_.find_stage(name) == nullptr)
        return at(array.place, bad_model("nothing writes {}", name));
    for (Stage& stage : program_.stages)
      if (!stage.updates.empty() && arrays_.at(stage.name).has_start &&
          same(stage.value, neutral(stage.updates[0].combine, stage.dtype)))
        stage.value = Term();
    std::string where;
    Status legal = verify(program_, &where);
    if (legal.ok()) legal = check_callable(program_, &where);
    const auto wrong = arrays_.find(where);
    if (!legal.ok()) return at(wrong != arrays_.end() ? wrong->second.place : start, legal);
    const AttrValue* stated = attrs_.find("schedule");
    if (stated == nullptr) return std::move(program_);
    const auto* schedule = std::get_if<std::string>(stated);
    if (schedule == nullptr) return at(attrs_place_, bad_model("\"schedule\" is text"));
    Result<Program> scheduled = parse_declarations(
        declarations_text(program_) + "schedule {" + *schedule + "}", {}, check_callable);
    if (scheduled) return scheduled;
    return at(attrs_place_, bad_model("\"schedule\": {}", scheduled.status().message()));
  }

  TextReader& reader_;
  ScriptScope scope_;
  Program program_;
  std::vector<std::string> buffers_;  // parameters, or their handles, then constants
  std::map<std::string, ScriptArray> arrays_;
  Attrs attrs_;
  Token attrs_place_;
  std::vector<ScriptLoop> loops_;                   // around the block, outermost first
  bool has_init_ = false, has_assignment_ = false;  // of the block
};

}  // namespace

Result<Program> read_program(TextReader& reader, const Token& start, const ScriptScope& scope) {
  return ProgramReader(reader, scope).read(start);
}

}  // namespace collage::tensor_program
