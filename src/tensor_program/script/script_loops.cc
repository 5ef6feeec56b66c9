#include "tensor_program/script/script_loops.h"

#include <algorithm>
#include <set>

#include "tensor_program/term_walk.h"

namespace collage::tensor_program {

void ScriptLoops::clear() {
  loops_.clear();
  set_variables();
}

const ScriptLoop* ScriptLoops::find(std::string_view name) const {
  for (const ScriptLoop& loop : loops_)
    if (loop.name == name) return &loop;
  return nullptr;
}

Status ScriptLoops::read() {
  TRY(reader_.expect("for"));
  const size_t outer = loops_.size();
  do {
    const Token place = reader_.token();
    if (find(place.text) != nullptr)
      return at(place, bad_model("loop {} stands twice", place.text));
    loops_.push_back({TRY(read_name(reader_, "the name of a loop"))});
  } while (TRY(reader_.accept(",")));
  TRY(reader_.expect("in"));
  const bool grid = is_of(reader_, "T", "grid");
  if (!grid && !reader_.is("range") && !is_of(reader_, "T", "serial"))
    return reader_.expected("range(…), T.serial(…) or T.grid(…)");
  const Token place = TRY(take(reader_));
  TRY(reader_.expect("("));
  std::vector<int64_t> extents =
      TRY(reader_.list(")", [&] { return read_extent(reader_, scope_); }));
  if (!grid && extents.size() == 2 && extents[0] == 0) extents.erase(extents.begin());
  if (extents.size() != loops_.size() - outer || (!grid && extents.size() != 1))
    return at(place, bad_model("{} loops of {} extents", loops_.size() - outer, extents.size()));
  for (size_t i = 0; i < extents.size(); ++i) loops_[outer + i].extent = extents[i];
  use_own_names();
  return {};
}

Status ScriptLoops::read_axes() {
  std::vector<std::string> names;
  do names.push_back(TRY(read_name(reader_, "the axis of a block")));
  while (TRY(reader_.accept(",")));
  TRY(reader_.expect("="));
  const Token what = TRY(take(reader_));
  const std::string form = what.text.starts_with("T.") ? what.text.substr(2) : what.text;
  std::string kinds = form == "axis.spatial" || form == "axis.S"     ? "S"
                      : form == "axis.reduce" || form == "axis.R"    ? "R"
                      : form == "axis.opaque" || form == "axis.scan" ? "O"
                                                                     : "";
  if (kinds.empty() && form != "axis.remap")
    return at(what, bad_model("expected T.axis.remap, or T.axis.spatial, reduce or opaque"));
  TRY(reader_.expect("("));
  if (form == "axis.remap") {
    kinds = TRY(read_string(reader_, "the kinds of axes, such as \"SSR\""));
    if (names.size() != kinds.size() || kinds.find_first_not_of("SR") != std::string::npos)
      return at(what, bad_model("{} axes of the kinds \"{}\"", names.size(), kinds));
    TRY(reader_.expect(","));
    TRY(reader_.expect("["));
    for (size_t i = 0; i < names.size(); ++i) {
      if (i > 0) TRY(reader_.expect(","));
      TRY(bind(names[i], kinds[i]));
    }
    TRY(reader_.expect("]"));
    return reader_.expect(")");
  }
  const int64_t extent = TRY(read_extent(reader_, scope_));
  TRY(reader_.expect(","));
  const ScriptLoop* loop = find(reader_.token().text);
  if (names.size() != 1 || (loop != nullptr && loop->extent != extent))
    return at(what, bad_model("{} axes of extent {}", names.size(), extent));
  TRY(bind(names[0], kinds[0]));
  return reader_.expect(")");
}

/// The axis is the loop whose name stands here.
Status ScriptLoops::bind(const std::string& axis, char kind) {
  auto* loop = const_cast<ScriptLoop*>(find(reader_.token().text));
  if (loop == nullptr) return reader_.expected("one of the loops around");
  if (loop->kind != 0) return at(reader_.token(), bad_model("loop {} has two axes", loop->name));
  loop->kind = kind;
  loop->also = axis;
  use_own_names();
  TRY(reader_.step());
  if (reader_.is(",") || reader_.is("]") || reader_.is(")")) return {};
  return at(reader_.token(), unsupported("an axis that is no loop: splitting and joining loops is "
                                         "the schedule's"));
}

void ScriptLoops::use_own_names() {
  for (ScriptLoop& loop : loops_) loop.axis = loop.name;
  set_variables();
}

void ScriptLoops::set_variables() {
  scope_.variables.clear();
  for (const ScriptLoop& loop : loops_) {
    scope_.variables[loop.name] = var(loop.axis);
    if (!loop.also.empty()) scope_.variables[loop.also] = var(loop.axis);
  }
}

PlainLoops ScriptLoops::plain(const std::vector<Term>& indices, const Shape& shape) {
  PlainLoops found(indices.size(), nullptr);
  for (size_t d = 0; d < indices.size(); ++d)
    for (ScriptLoop& loop : loops_)
      if (is_variable(indices[d], loop.axis) && loop.indexes_stage() && loop.extent == shape[d] &&
          std::count(found.begin(), found.end(), &loop) == 0)
        found[d] = &loop;
  return found;
}

std::vector<Axis> ScriptLoops::name_for_update(const Stage& stage, const std::vector<Term>& indices,
                                               const PlainLoops& plain) {
  std::set<std::string> taken, axes;
  for (const Axis& axis : stage.axes) axes.insert(axis.name);
  for (ScriptLoop& loop : loops_) {
    loop.axis.clear();
    const bool is_index = std::any_of(indices.begin(), indices.end(), [&](const Term& index) {
      return depends_on(index, loop.name);
    });
    if (!is_index || !loop.indexes_stage()) continue;
    for (const Axis& axis : stage.axes)
      if (axis.name == loop.name && axis.extent == loop.extent) loop.axis = axis.name;
    if (!loop.axis.empty()) taken.insert(loop.axis);
  }
  for (size_t d = 0; d < plain.size(); ++d)
    if (plain[d] != nullptr && plain[d]->axis.empty() && taken.insert(stage.axes[d].name).second)
      plain[d]->axis = stage.axes[d].name;
  std::vector<Axis> over;
  for (ScriptLoop& loop : loops_) {
    if (!loop.axis.empty()) continue;
    loop.axis = loop.name;
    while (!axes.insert(loop.axis).second) loop.axis += "_";
    over.push_back({loop.axis, loop.extent});
  }
  set_variables();
  return over;
}

}  // namespace collage::tensor_program
