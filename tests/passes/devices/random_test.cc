// Random graphs with random constraints against a planner that tries every assignment of devices
// and memory scopes to values and knows no unification.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "ir/op.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "passes/devices/device_copies.h"
#include "passes/devices/operators.h"
#include "passes/devices/plan_devices.h"

namespace collage {
namespace {

using Random = std::mt19937;
size_t below(Random& random, size_t count) { return random() % count; }

const std::vector<VirtualDevice> kPlaces = {{"cpu", 0, ""}, {"cpu", 0, "texture"},
                                            {"gpu", 0, ""}, {"gpu", 0, "texture"},
                                            {"gpu", 1, ""}, {"gpu", 1, "texture"}};
const std::vector<std::string> kTexts = {
    "cpu", "cpu:0", "gpu", "gpu:0", "gpu:1", "/texture", "/global", "gpu/texture", "gpu:1/global"};

Expr call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

Function random_function(Random& random) {
  const TensorType type{{2}, DType::kFloat32};
  std::vector<Expr> params = {make_var("a", type), make_var("b", type)}, values = params;
  values.push_back(make_constant(Tensor::from<float>({2}, {0.5F, 2})));
  const auto any = [&] { return values[below(random, values.size())]; };
  const auto text = [&] { return kTexts[below(random, kTexts.size())]; };
  const size_t count = 3 + below(random, 5);
  for (size_t i = 0; i < count; ++i) switch (below(random, 7)) {
      case 0:
        values.push_back(call("nn.relu", {any()}));
        break;
      case 1:
      case 2:
        values.push_back(call("add", {any(), any()}));
        break;
      case 3:
      case 4: {
        const bool body = below(random, 4) != 0, result = below(random, 4) == 0;
        values.push_back(
            call("on_device", {any()},
                 {{"device", text()}, {"constrain_body", body}, {"constrain_result", result}}));
        break;
      }
      case 5:
        values.push_back(call("device_copy", {any()}, {{"from", text()}, {"to", text()}}));
        break;
      default: {
        const Expr tuple = make_tuple({any(), any()});
        values.push_back(
            make_tuple_get_item(tuple, static_cast<int64_t>(below(random, 2))).value());
      }
    }
  if (below(random, 2) == 0) return make_function(params, values.back());
  return make_function(params, make_tuple({values.back(), any()}));
}

// The value behind projections of tuples.
Expr behind_tuples(Expr expr) {
  while (const auto* item = as<TupleGetItemNode>(expr))
    expr = as<TupleNode>(item->tuple)->fields[static_cast<size_t>(item->index)];
  return expr;
}
// And behind placements.
Expr origin_of(const Expr& expr) {
  const Expr value = behind_tuples(expr);
  return device_placement(value) ? origin_of(as<CallNode>(value)->args[0]) : value;
}

bool fits(const VirtualDevice& device, const DeviceConstraint& constraint) {
  return (!constraint.device || *constraint.device == device.device) &&
         (!constraint.id || *constraint.id == device.id) &&
         (!constraint.memory_scope || *constraint.memory_scope == device.memory_scope);
}

// Everything that has a place: parameters, kernels, constrained results of placements, and results
// of the function. Each has the inputs that must be where it is.
class EveryAssignment {
 public:
  explicit EveryAssignment(const Function& function) {
    for (const Expr& param : function->params) node(param);
    for (const Expr& expr : post_order(function->body)) add(expr);
    std::vector<Expr> results = {function->body};
    if (const auto* tuple = as<TupleNode>(function->body)) results = tuple->fields;
    for (const Expr& result : results) {
      nodes_.emplace_back();
      live_.insert(nodes_.size() - 1);
      use(result, nodes_.size() - 1);
      keep(result);
    }
  }

  // The number of copies; none where no assignment holds.
  std::optional<size_t> copies() {
    std::vector<size_t> chosen(nodes_.size());
    search(0, 0, chosen);
    if (best_.empty()) return std::nullopt;
    std::set<std::pair<const ExprNode*, size_t>> made;
    for (const auto& [origin, user] : uses_) {
      if (live_.count(user) == 0) continue;
      const size_t wanted = best_[user];
      if (best_[ids_.at(origin)] != wanted) made.emplace(origin, wanted);
    }
    return made.size();
  }

 private:
  struct Node {
    std::vector<DeviceConstraint> constraints;
    std::vector<size_t> together;  // with earlier ones
  };

  size_t node(const Expr& expr) {
    const auto [known, is_new] = ids_.try_emplace(expr.get(), nodes_.size());
    if (is_new) nodes_.emplace_back();
    return known->second;
  }
  // What the user of a value must be together with.
  std::optional<size_t> seen(const Expr& expr) {
    const Expr value = behind_tuples(expr);
    if (value->kind() == ExprKind::kConstant) return std::nullopt;
    const auto placement = device_placement(value);
    if (placement && origin_of(value)->kind() == ExprKind::kConstant && placement->result.is_open())
      return std::nullopt;
    if (placement && placement->result.is_open()) return std::nullopt;
    return node(value);
  }
  void use(const Expr& arg, size_t user) {
    if (const auto other = seen(arg)) nodes_[user].together.push_back(*other);
    const Expr origin = origin_of(arg);
    if (origin->kind() != ExprKind::kConstant) uses_.emplace_back(origin.get(), user);
  }
  void add(const Expr& expr) {
    const auto* made = as<CallNode>(expr);
    if (made == nullptr) return;
    if (const auto placement = device_placement(expr)) {
      if (const auto operand = seen(made->args[0]))
        nodes_[*operand].constraints.push_back(placement->operand);
      if (!placement->result.is_open()) nodes_[node(expr)].constraints.push_back(placement->result);
      return;
    }
    const size_t user = node(expr);
    for (const Expr& arg : made->args) use(arg, user);
  }

  // Projections keep nothing but their field.
  void keep(const Expr& expr) {
    const Expr origin = origin_of(expr);
    if (const auto* made = as<CallNode>(origin); made && live_.insert(node(origin)).second)
      for (const Expr& arg : made->args) keep(arg);
  }

  void search(size_t next, size_t rank, std::vector<size_t>& chosen) {
    if (rank >= best_rank_) return;
    if (next == nodes_.size()) {
      best_ = chosen;
      best_rank_ = rank;
      return;
    }
    for (size_t place = 0; place < kPlaces.size(); ++place) {
      bool holds = true;
      for (const DeviceConstraint& constraint : nodes_[next].constraints)
        holds = holds && fits(kPlaces[place], constraint);
      for (const size_t other : nodes_[next].together)
        holds = holds && (other > next || chosen[other] == place);
      if (!holds) continue;
      chosen[next] = place;
      search(next + 1, rank + place, chosen);
    }
  }

  std::vector<Node> nodes_;
  std::map<const ExprNode*, size_t> ids_;
  std::vector<std::pair<const ExprNode*, size_t>> uses_;
  std::set<size_t> live_;
  std::vector<size_t> best_;
  size_t best_rank_ = std::numeric_limits<size_t>::max();
};

TEST(RandomGraphs, ArePlannedAsByTryingEveryAssignment) {
  register_operators();
  const DeclaredDevices devices = DeclaredDevices::parse("cpu:0, gpu:0, gpu:1").value();
  Random random(11);
  size_t planned_graphs = 0, refused = 0, copies = 0;
  for (int round = 0; round < 4000; ++round) {
    const Module module(random_function(random));
    SCOPED_TRACE(to_text(module));
    const Result<Module> planned = plan_devices(module, devices);
    const std::optional<size_t> expected = EveryAssignment(module.main()).copies();
    ASSERT_EQ(planned.ok(), expected.has_value())
        << (planned.ok() ? "" : planned.status().message());
    if (!expected) {
      ++refused;
      continue;
    }
    ++planned_graphs;
    copies += *expected;
    ASSERT_EQ(count_device_copies(*planned), *expected) << to_text(*planned);
    const Result<Module> again = plan_devices(*planned, devices);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    ASSERT_EQ(to_text(*again), to_text(*planned));
    const std::vector<Tensor> inputs = {Tensor::from<float>({2}, {-1, 3}),
                                        Tensor::from<float>({2}, {0.25F, -4})};
    const auto before = interpret(module.main(), inputs),
               after = interpret(planned->main(), inputs);
    ASSERT_TRUE(before.ok() && after.ok());
    for (size_t i = 0; i < before->size(); ++i)
      for (int64_t j = 0; j < 2; ++j)
        ASSERT_EQ((*before)[i].element_as_double(j), (*after)[i].element_as_double(j));
  }
  EXPECT_GT(planned_graphs, 2000U);
  EXPECT_GT(refused, 100U);
  EXPECT_GT(copies, 500U);
}

}  // namespace
}  // namespace collage
