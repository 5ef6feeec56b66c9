// Matrix products: nn.dense, nn.matmul, nn.batch_matmul, qnn.dense and qnn.matmul.
//
// A constant right operand is packed once, in the form that each variant wants: `packed` (oneDNN's
// blocked form for matmul), `inner` (the one for inner products), and plain with rows or columns
// contiguous, which stream best when the left operand is a single row, and which programs for one
// row and for many can share. Left rows over one right matrix are merged into one large product.
// Products of two computed tensors are batched; with many rows it can pay to pack the right operand
// first (`repacked`).
#include "backend/onednn/implementation.h"
#include "backend/onednn/quantised.h"
#include "ir/op.h"

namespace collage::onednn {

namespace {

struct ProductProblem {
  CompositePtr composite;
  const Operand *left, *right;
  int64_t batch, left_batch, right_batch, m, k, n;
  bool transpose_left, transpose_right;
  Shape result;             // (m, n), or (batch, m, n)
  std::vector<Step> steps;  // on that shape, after the bias
  std::optional<Operand> bias;

  bool batched() const { return result.size() == 3; }
  Types types;
  std::optional<QuantisedProduct> quantised;
  // What the primitive multiplies by, and how a constant is given.
  Type right_type() const { return quantised ? kSignedByte : types.source; }
  Type constant_type() const { return quantised ? kSignedByte : kFloat; }
  // Of the weights' dimension `columns` of the primitive that has channels.
  std::vector<AttributeValues> values(int columns) const {
    return quantised ? quantised->attributes(1 << columns) : std::vector<AttributeValues>();
  }
  // A matrix of that many rows and columns, or its transpose in memory, in batches.
  Desc matrix(int64_t count, int64_t rows, int64_t columns, bool transposed, Type type) const {
    Dims dims = {rows, columns}, strides = {columns, 1};
    if (transposed) strides = {1, rows};
    if (batched()) {
      dims.insert(dims.begin(), count);
      strides.insert(strides.begin(), rows * columns);
    }
    return Desc(dims, type, strides);
  }
  Desc left_desc() const { return matrix(left_batch, m, k, transpose_left, types.source); }
  // The type of the parameter.
  Type right_param() const { return quantised ? right->type : types.source; }
  // As given, or with integers of another type.
  Desc right_desc() const {
    return right_desc(right->is_constant() ? constant_type() : right_param());
  }
  // A computed one as the primitive reads it.
  Desc computed_desc() const { return quantised ? right_desc(kSignedByte) : right_desc(); }
  Desc right_desc(Type type) const { return matrix(right_batch, k, n, transpose_right, type); }
  Desc result_desc() const { return plain_desc(result, types.result); }
};

Result<ProductProblem> read_product(const CompositePtr& composite) {
  const CallNode& call = *composite->anchor;
  ProductProblem p;
  p.composite = composite;
  p.left = &composite->inputs[0];
  p.right = &composite->inputs[1];
  if (p.left->is_constant()) return unsupported("onednn: a product with a constant left operand");
  bool dense = call.op->name.ends_with("dense");
  p.transpose_left = !dense && call.attrs.flag("transpose_a");
  p.transpose_right = dense || call.attrs.flag("transpose_b");
  const Shape &a = p.left->shape, &b = p.right->shape, &result = composite->anchor_shape;
  if (result.empty() || b.size() < 2) return unsupported("onednn: a product of vectors");
  auto dims = [](const Shape& s, bool transposed) {
    int64_t rows = s.size() < 2 ? 1 : s[s.size() - 2], columns = s.back();
    return transposed ? std::pair{columns, rows} : std::pair{rows, columns};
  };
  std::tie(p.m, p.k) = dims(a, p.transpose_left);
  p.n = dims(b, p.transpose_right).second;
  auto batch = [](const Shape& s) {
    return s.size() < 3 ? 1 : num_elements(Shape(s.begin(), s.end() - 2));
  };
  p.left_batch = batch(a), p.right_batch = batch(b), p.batch = batch(result);
  size_t rank = result.size();
  std::vector<size_t> ends;
  if (p.right_batch == 1 && (!p.transpose_left || p.left_batch == 1)) {
    p.m *= p.left_batch;
    p.left_batch = p.batch = 1;
    ends = {rank - 1, rank};
  } else {
    if ((p.left_batch != p.batch && p.left_batch != 1) ||
        (p.right_batch != p.batch && p.right_batch != 1))
      return unsupported("onednn: batches that are broadcast in part");
    ends = {rank - 2, rank - 1, rank};
  }
  p.result = merge_dims(result, ends);
  p.steps = TRY(merge_dims(composite->steps, result, ends));
  if (!p.steps.empty()) {
    const Step& first = p.steps.front();
    if (first.kind == Step::Kind::kBinary && first.algorithm == dnnl::algorithm::binary_add &&
        first.operand.is_constant() && num_elements(first.operand.shape) == p.n &&
        first.operand.shape.back() == p.n) {
      p.bias = first.operand;
      p.steps.erase(p.steps.begin());
    }
  }
  p.types = composite->types;
  if (composite->quantised()) p.quantised = TRY(read_quantised(*composite));
  return p;
}

using ProductProblemPtr = std::shared_ptr<const ProductProblem>;

Result<Encodings> encodings_of(const ProductProblem& p, const Tail& tail) {
  Encodings encodings(*p.composite);
  TRY(encodings.want(*p.left, Layout(), p.types.source));
  TRY(encodings.want(*p.right, Layout(), p.right_param()));
  TRY(encodings.want(p.steps, tail.forms));
  return encodings;
}

Value left_value(ProgramBuilder& builder, const ProductProblem& p, const Desc& wanted) {
  return builder.input(static_cast<size_t>(p.left->param), wanted);
}

Value right_constant(ProgramBuilder& builder, const ProductProblem& p, const Desc& given,
                     const Desc& wanted) {
  return builder.constant(p.quantised ? p.quantised->weights : p.right->constant, given, wanted);
}

Value constant_bias(ProgramBuilder& builder, const ProductProblem& p, const Desc& desc) {
  return builder.constant(p.bias->constant, desc, desc);
}

// Computed unsigned integers as the signed ones that they are less 128.
Value with_sign(ProgramBuilder& builder, const ProductProblem& p, Value given) {
  const Desc from = p.right_desc(), to = p.right_desc(kSignedByte);
  const std::vector<AttributeValues> offset = {
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_FROM, 0, Tensor::scalar<int32_t>(kSignOffset)}};
  dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes({}, masks_of(offset)));
  Value result = builder.temporary(to);
  Bindings bindings = {{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, result}};
  bind_attribute_values(builder, offset, bindings);
  builder.add(pd, bindings, masks_of(offset));
  return result;
}

// Variant::weights. What is packed one way for these rows and in another for others is of no use to
// programs for other shapes. `make(rows)`: the descriptor for so many.
template <typename Make>
std::string form_for_any_rows(const ProductProblem& p, const Desc& given, const Desc& kept,
                              Make make) {
  if (!p.right->is_constant()) return kPlainWeights;
  constexpr int64_t kFew = 1, kMany = 64;
  const bool for_any = guarded("weights", [&]() -> Status {
                         for (const int64_t rows : {kFew, kMany})
                           if (make(rows).weights_desc() != kept) return unsupported("packed");
                         return {};
                       }).ok();
  return for_any ? weight_form(given, kept) : "";
}

// matmul; `weights` is the right operand's form in the product.
Result<Implementation> with_matmul(const ProductProblemPtr& p, std::string name,
                                   const Desc& weights) {
  Desc bias = plain_desc(p->batched() ? Shape{1, 1, p->n} : Shape{1, p->n});
  const auto values = p->values(p->batched() ? 2 : 1);
  auto anchored = TRY(plan_anchor(
      p->steps, p->result, Layout(),
      [&](const dnnl::primitive_attr& attr) {
        using PrimitiveDesc = dnnl::matmul::primitive_desc;
        if (!p->bias)
          return PrimitiveDesc(engine(), p->left_desc(), weights, p->result_desc(), attr);
        return PrimitiveDesc(engine(), p->left_desc(), weights, bias, p->result_desc(), attr);
      },
      p->types.result, masks_of(values)));
  Encodings encodings = TRY(encodings_of(*p, anchored.tail));
  Variant variant = encodings.variant(std::move(name), Layout());
  variant.weights =
      form_for_any_rows(*p, p->right_desc(), anchored.pd.weights_desc(), [&](int64_t rows) {
        const Desc left = p->matrix(p->left_batch, rows, p->k, false, p->types.source);
        const Desc result = p->matrix(p->batch, rows, p->n, false, p->types.result);
        return dnnl::matmul::primitive_desc(engine(), left, weights, result,
                                            attributes({}, masks_of(values)));
      });
  auto build = [p, anchored, bias, values]() {
    const auto& pd = anchored.pd;
    ProgramBuilder builder;
    Bindings bindings = {{DNNL_ARG_SRC, left_value(builder, *p, pd.src_desc())}};
    if (p->right->is_constant()) {
      bindings.push_back(
          {DNNL_ARG_WEIGHTS, right_constant(builder, *p, p->right_desc(), pd.weights_desc())});
    } else {
      auto param = static_cast<size_t>(p->right->param);
      Value right = builder.input(param, p->right_desc());
      if (p->right_param() == kUnsignedByte) right = with_sign(builder, *p, right);
      bindings.push_back(
          {DNNL_ARG_WEIGHTS, reordered(builder, right, p->computed_desc(), pd.weights_desc())});
    }
    if (p->bias) bindings.push_back({DNNL_ARG_BIAS, constant_bias(builder, *p, bias)});
    bind_attribute_values(builder, values, bindings);
    append_anchor(builder, anchored, std::move(bindings), p->result_desc());
    return builder.finish();
  };
  return Implementation{std::move(variant), std::move(build)};
}

// inner_product, whose weights are (n, k) with k or n contiguous, or packed (Tag::any).
Result<Implementation> with_inner_product(const ProductProblemPtr& p, std::string name, Tag form) {
  if (p->batched() || p->transpose_left || !p->right->is_constant())
    return unsupported("onednn: no inner product");
  Desc weights({p->n, p->k}, p->right_type(), form), bias({p->n}, kFloat, Tag::a);
  const auto values = p->values(0);
  auto anchored = TRY(plan_anchor(
      p->steps, p->result, Layout(),
      [&](const dnnl::primitive_attr& attr) {
        using PrimitiveDesc = dnnl::inner_product_forward::primitive_desc;
        constexpr auto kForward = dnnl::prop_kind::forward_inference;
        if (!p->bias)
          return PrimitiveDesc(engine(), kForward, p->left_desc(), weights, p->result_desc(), attr);
        return PrimitiveDesc(engine(), kForward, p->left_desc(), weights, bias, p->result_desc(),
                             attr);
      },
      p->types.result, masks_of(values)));
  Encodings encodings = TRY(encodings_of(*p, anchored.tail));
  const Desc given({p->n, p->k}, p->constant_type(), p->transpose_right ? Tag::ab : Tag::ba);
  Variant variant = encodings.variant(std::move(name), Layout());
  variant.weights = form_for_any_rows(*p, given, anchored.pd.weights_desc(), [&](int64_t rows) {
    return dnnl::inner_product_forward::primitive_desc(
        engine(), dnnl::prop_kind::forward_inference, plain_desc({rows, p->k}, p->types.source),
        weights, plain_desc({rows, p->n}, p->types.result), attributes({}, masks_of(values)));
  });
  auto build = [p, anchored, bias, values, given]() {
    const auto& pd = anchored.pd;
    ProgramBuilder builder;
    Bindings bindings = {{DNNL_ARG_SRC, left_value(builder, *p, pd.src_desc())},
                         {DNNL_ARG_WEIGHTS, right_constant(builder, *p, given, pd.weights_desc())}};
    if (p->bias) bindings.push_back({DNNL_ARG_BIAS, constant_bias(builder, *p, bias)});
    bind_attribute_values(builder, values, bindings);
    append_anchor(builder, anchored, std::move(bindings), p->result_desc());
    return builder.finish();
  };
  return Implementation{std::move(variant), std::move(build)};
}

}  // namespace

Result<std::vector<Implementation>> plan_product(const CompositePtr& composite) {
  ProductProblemPtr p = std::make_shared<const ProductProblem>(TRY(read_product(composite)));
  Implementations found;
  auto packed = [&]() { return Desc(p->right_desc().get_dims(), p->right_type(), Tag::any); };
  if (p->right->is_constant()) {
    if (p->m == 1) {
      found.add(with_inner_product(p, "rows", Tag::ab));
      found.add(with_inner_product(p, "columns", Tag::ba));
    }
    found.add(with_matmul(p, "packed", packed()));
    if (p->m > 1) {
      found.add(with_inner_product(p, "inner", Tag::any));
      found.add(with_inner_product(p, "rows", Tag::ab));
      found.add(with_inner_product(p, "columns", Tag::ba));
    }
  } else {
    found.add(with_matmul(p, "direct", p->computed_desc()));
    // Packed integers carry compensation sums, which a saved program cannot describe.
    if (p->m >= 32 && !p->quantised) found.add(with_matmul(p, "repacked", packed()));
  }
  return found.take();
}

}  // namespace collage::onednn
