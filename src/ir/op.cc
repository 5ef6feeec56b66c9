#include "ir/op.h"

#include <map>
#include <memory>
#include <mutex>

namespace collage {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const OpDef>, std::less<>> ops;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// `value` as the kind of `like`, where the conversion loses nothing.
Result<AttrValue> convert(const AttrValue& value, const AttrValue& like) {
  if (value.index() == like.index() || std::holds_alternative<None>(like)) return value;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    if (std::holds_alternative<double>(like)) return AttrValue(static_cast<double>(*i));
    if (std::holds_alternative<bool>(like) && (*i == 0 || *i == 1)) return AttrValue(*i != 0);
    if (std::holds_alternative<Ints>(like)) return AttrValue(Ints{*i});
  }
  if (const auto* b = std::get_if<bool>(&value))
    if (std::holds_alternative<int64_t>(like)) return AttrValue(static_cast<int64_t>(*b));
  if (const auto* text = std::get_if<std::string>(&value))
    if (std::holds_alternative<DType>(like)) return AttrValue(TRY(parse_dtype(*text)));
  if (const auto* list = std::get_if<Ints>(&value)) {
    if (list->empty() && std::holds_alternative<IntLists>(like)) return AttrValue(IntLists{});
    if (std::holds_alternative<std::vector<double>>(like))
      return AttrValue(std::vector<double>(list->begin(), list->end()));
  }
  return bad_model("value {} has the wrong kind (like {})", attr_to_string(value),
                   attr_to_string(like));
}

}  // namespace

std::string_view fusion_kind_name(FusionKind kind) {
  static constexpr std::string_view kNames[] = {"elementwise", "broadcast", "injective",
                                                "reduction",   "anchor",    "opaque"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Attrs> OpDef::normalise(const Attrs& given) const {
  Attrs result;
  size_t used = 0;
  for (const AttrSpec& spec : attrs) {
    const AttrValue* value = given.find(spec.name);
    if (value == nullptr) {
      if (spec.required) return bad_model("{}: attribute '{}' is missing", name, spec.name);
      result.set(spec.name, spec.default_value);
      continue;
    }
    ++used;
    Result<AttrValue> converted = convert(*value, spec.default_value);
    if (!converted)
      return std::move(converted).status().with_context(
          fmt::format("{}: attribute '{}'", name, spec.name));
    result.set(spec.name, *converted);
  }
  if (used != given.entries().size())
    for (const auto& [key, value] : given.entries())
      if (!result.has(key)) {
        if (!has_open_attrs) return bad_model("{}: unknown attribute '{}'", name, key);
        result.set(key, value);
      }
  return result;
}

const OpDef& register_op(OpDef op) {
  std::lock_guard lock(registry().mutex);
  auto [it, inserted] = registry().ops.emplace(op.name, nullptr);
  COLLAGE_CHECK(inserted, "operator '{}' is registered twice", op.name);
  it->second = std::make_unique<const OpDef>(std::move(op));
  return *it->second;
}

const OpDef* find_op(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().ops.find(name);
  return it == registry().ops.end() ? nullptr : it->second.get();
}

std::vector<const OpDef*> all_ops() {
  std::lock_guard lock(registry().mutex);
  std::vector<const OpDef*> result;
  for (const auto& [name, op] : registry().ops) result.push_back(op.get());
  return result;
}

}  // namespace collage
