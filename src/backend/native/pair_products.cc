#include "backend/native/pair_products.h"

#include <utility>
#include <vector>

namespace collage::native {
namespace {

namespace ir = Halide::Internal;
using Halide::Expr;

constexpr char kPairProduct[] = "collage_pair_product";
constexpr int kTerms = 4;  // of a sum

class LowerPairProducts : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  Expr visit(const ir::VectorReduce* op) override {
    const auto* call = op->value.as<ir::Call>();
    if (call == nullptr || !call->is_extern() || call->name != kPairProduct)
      return ir::IRMutator::visit(op);
    const int lanes = op->type.lanes();
    if (op->op != ir::VectorReduce::Add || call->type.lanes() != kTerms * lanes)
      return ir::IRMutator::visit(op);
    const Expr products = Halide::widening_mul(mutate(call->args[0]), mutate(call->args[1]));
    const Expr pairs = ir::VectorReduce::make(ir::VectorReduce::SaturatingAdd, products, 2 * lanes);
    return ir::VectorReduce::make(ir::VectorReduce::Add,
                                  ir::Cast::make(Halide::Int(32, 2 * lanes), pairs), lanes);
  }
};

}  // namespace

Expr pair_product(const Expr& product) {
  const auto* factors = product.as<ir::Mul>();
  std::vector<Expr> bytes = {factors->a.as<ir::Cast>()->value, factors->b.as<ir::Cast>()->value};
  if (!bytes[0].type().is_uint()) std::swap(bytes[0], bytes[1]);
  return ir::Call::make(Halide::Int(32), kPairProduct, bytes, ir::Call::PureExtern);
}

void lower_pair_products(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new LowerPairProducts);
}

}  // namespace collage::native
