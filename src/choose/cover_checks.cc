#include "choose/cover_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "ir/visitor.h"
#include "verify/check_seed.h"

namespace collage {

namespace {

// What is known on two groups of inputs: an output is silent where it is so on both.
CoverCheck merged(const CoverCheck& a, const CoverCheck& b) {
  CoverCheck both = a.failure.empty() ? b : a;
  both.error = std::max(a.error, b.error);
  both.excused = a.excused || b.excused;
  std::erase_if(both.silent, [&](const auto& output) {
    return !a.silent.contains(output.first) || !b.silent.contains(output.first);
  });
  return both;
}

}  // namespace

std::string refusal(const CoverCheck& check, double max_error) {
  if (!check.failure.empty()) return check.failure;
  if (max_error == 0 || check.error <= kOfMaxError * max_error) return "";
  return fmt::format("errs by {:.2g} of the largest value like it", check.error);
}

const std::string& CoverChecks::constants() {
  if (!constants_.empty()) return constants_;
  size_t digest = 0;
  for (const Expr& expr : post_order(model_.function->body))
    if (const auto* constant = as<ConstantNode>(expr))
      digest = hash_combine(
          digest, std::hash<std::string_view>{}(
                      {static_cast<const char*>(constant->value.raw()), constant->value.bytes()}));
  constants_ = fmt::format("constants {:016x}", digest);
  return constants_;
}

std::string CoverChecks::row_text(const NamedCover& cover, size_t group) {
  return fmt::format("{}\n{}\n{}\ncheck{} on {}", model_.structure, sha256_hex(cover.text),
                     constants(), reference_.is_strict() ? " strictly" : "",
                     group == 0 ? "seeded inputs" : reference_.given_digest(group - 1));
}

std::optional<CoverCheck> CoverChecks::find(const NamedCover& cover, size_t group) {
  const std::string key = CostDatabase::key_of(row_text(cover, group), model_.context);
  std::optional<CoverCheck> check = find_value(database_, "check", key, check_row_from_json);
  const bool wants_more = group == 0 && reference_.wants_all_ranges();
  if (check && wants_more && !check->all_ranges && check->failure.empty()) return {};
  return check;
}

void CoverChecks::put(const NamedCover& cover, size_t group, const CoverCheck& check) {
  const std::string text = row_text(cover, group);
  database_.put("check", CostDatabase::key_of(text, model_.context), text,
                json_text(to_json(check)), model_.context);
}

std::optional<CoverCheck> CoverChecks::known(const NamedCover& cover) {
  std::optional<CoverCheck> result;
  for (size_t group = 0; group < groups(); ++group) {
    const std::optional<CoverCheck> one = find(cover, group);
    if (!one) return {};
    if (!one->failure.empty()) return one;  // whatever the others say
    result = result ? merged(*result, *one) : *one;
  }
  return result;
}

Result<CoverCheck> CoverChecks::check(const NamedCover& cover, Executor& executor) {
  std::optional<CoverCheck> result;
  for (size_t group = 0; group < groups(); ++group) {
    std::optional<CoverCheck> one = find(cover, group);
    if (!one) one = TRY(run(cover, group, executor));
    result = result ? merged(*result, *one) : *one;
    if (!result->failure.empty()) break;
  }
  return *std::move(result);
}

Result<CoverCheck> CoverChecks::run(const NamedCover& cover, size_t group, Executor& executor) {
  // The user's bound is held against the error, so that a row is good for any.
  const Tolerance tolerance =
      cover.lowered ? Tolerance{.of_scale = std::numeric_limits<double>::max()} : model_tolerance();
  const auto answers = [&] {
    return group == 0 ? reference_.seeded() : reference_.given(group - 1);
  };
  TRY(answers());
  const Result<ProgramError> error =
      group == 0 ? reference_.error(executor, tolerance)
                 : reference_.error_on_given(group - 1, executor, tolerance);
  CoverCheck check;
  check.seed = check_seed();
  if (error && error->error > kMostError) {
    check.failure = "errs beyond measure";
  } else if (error) {
    check.error = error->error;
    check.excused = error->excused;
  } else {
    check.failure = error.status().to_string();
    // Memory that is missing now says nothing of later runs.
    if (error.status().code() == ErrorCode::kUnavailable) return check;
  }
  check.all_ranges = reference_.tried_all_ranges();
  for (const auto& [output, reason] : reference_.silent(TRY(answers())))
    check.silent[model_.output_names.at(output)] = reason;
  put(cover, group, check);
  return check;
}

void CoverChecks::remember_failure(const NamedCover& cover, const std::string& failure) {
  CoverCheck check;
  check.failure = failure;
  check.all_ranges = true;
  put(cover, 0, check);
}

void CoverChecks::remember_culprits(const NamedCover& cover,
                                    const std::vector<std::string>& culprits) {
  for (size_t group = 0; group < groups(); ++group) {
    std::optional<CoverCheck> check = find(cover, group);
    if (!check || check->failure.empty()) continue;
    check->culprits = culprits;
    put(cover, group, *check);
  }
}

}  // namespace collage
