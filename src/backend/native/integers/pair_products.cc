#include "backend/native/integers/pair_products.h"

#include <utility>
#include <vector>

#include "backend/native/codegen/halide_math.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;

constexpr char kPairProduct[] = "collage_pair_product";
constexpr int kTerms = 4;  // of a sum

class LowerPairProducts : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  HExpr visit(const ir::VectorReduce* op) override {
    const auto* call = op->value.as<ir::Call>();
    if (call == nullptr || !call->is_extern() || call->name != kPairProduct)
      return ir::IRMutator::visit(op);
    const int lanes = op->type.lanes();
    if (op->op != ir::VectorReduce::Add || call->type.lanes() != kTerms * lanes)
      return ir::IRMutator::visit(op);
    HExpr pairs;
    for (size_t i = 0; i < call->args.size(); i += 2) {
      const HExpr products = Halide::widening_mul(mutate(call->args[i]), mutate(call->args[i + 1]));
      const HExpr more =
          ir::VectorReduce::make(ir::VectorReduce::SaturatingAdd, products, 2 * lanes);
      pairs = pairs.defined() ? pairs + more : more;
    }
    return ir::VectorReduce::make(ir::VectorReduce::Add,
                                  ir::Cast::make(Halide::Int(32, 2 * lanes), pairs), lanes);
  }
};

}  // namespace

HExpr pair_product(const HExpr& product) {
  std::vector<HExpr> bytes;
  const auto add = [&](const HExpr& one) {
    const auto* factors = one.as<ir::Mul>();
    HExpr a = factors->a.as<ir::Cast>()->value, b = factors->b.as<ir::Cast>()->value;
    if (!a.type().is_uint()) std::swap(a, b);
    bytes.insert(bytes.end(), {a, b});
  };
  const auto* sum = product.as<ir::Add>();
  add(sum != nullptr ? sum->a : product);
  if (sum != nullptr) add(sum->b);
  return ir::Call::make(Halide::Int(32), kPairProduct, bytes, ir::Call::PureExtern);
}

void lower_pair_products(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new LowerPairProducts);
}

}  // namespace collage::native
