//! What gradients cost in memory once they are compiled: temporaries, and floating-point operations
//! that are done again.

use std::sync::Arc;
use vramlab_compiler::{Options, compile};
use vramlab_ir::{DType, Func, FuncBuilder, Param, Params, Program, Type, Value};
use vramlab_ops::{CHECKPOINT, DOT, SUM, TANH};
use vramlab_transform::{Joint, Stage, residual_table, residuals, value_and_grad};

const MIB: f64 = (1 << 20) as f64;

fn dot(builder: &mut FuncBuilder, x: Value, w: Value) -> Value {
    let ints = |axes: &[i64]| Param::Ints(axes.to_vec());
    let params = Params::new()
        .with("lhs_batch", ints(&[]))
        .with("rhs_batch", ints(&[]))
        .with("lhs_contract", ints(&[1]))
        .with("rhs_contract", ints(&[0]));
    builder.push(&DOT, params, &[x, w], None).unwrap()[0]
}

/// `layers` times h = tanh(h · w), with a checkpoint around every `segment` of them, and the sum.
fn mlp(layers: usize, rows: usize, width: usize, segment: Option<usize>) -> Func {
    let mut builder = FuncBuilder::new("mlp");
    let wide = Type::new(DType::F32, [rows, width]);
    let square = Type::new(DType::F32, [width, width]);
    let x = builder.param(wide.clone());
    let ws: Vec<Value> = (0..layers).map(|_| builder.param(square.clone())).collect();
    let mut h = x;
    for part in ws.chunks(segment.unwrap_or(1)) {
        let mut inner = FuncBuilder::new("segment");
        let mut value = inner.param(wide.clone());
        let own: Vec<Value> = part.iter().map(|_| inner.param(square.clone())).collect();
        for w in own {
            let product = dot(&mut inner, value, w);
            value = inner.push(&TANH, Params::new(), &[product], None).unwrap()[0];
        }
        let func = Arc::new(inner.finish(vec![value]));
        let inputs: Vec<Value> = std::iter::once(h).chain(part.iter().copied()).collect();
        let (op, kind) = match segment {
            Some(_) => (&CHECKPOINT, ("policy", "nothing_saveable")),
            None => (&vramlab_ops::CALL, ("kind", "jit")),
        };
        let params =
            Params::new().with(kind.0, Param::Text(kind.1.into())).with("func", Param::Func(func));
        h = builder.push(op, params, &inputs, None).unwrap()[0];
    }
    let sum = Params::new().with("axes", Param::Ints(vec![0, 1])).with("keep", Param::Bool(false));
    let result = builder.push(&SUM, sum, &[h], None).unwrap()[0];
    builder.finish(vec![result])
}

fn planned(func: &Func) -> (Joint, Program) {
    let wrt: Vec<usize> = (1..func.params.len()).collect();
    let joint = value_and_grad(func, &wrt).unwrap();
    let donate = vec![false; joint.func.params.len()];
    let program = compile(&Arc::new(joint.func.clone()), &donate, &Options::default()).unwrap();
    (joint, program)
}

fn temporaries(segment: Option<usize>) -> f64 {
    planned(&mlp(8, 4096, 512, segment)).1.temp_bytes as f64 / MIB
}

#[test]
fn remat_mlp_keeps_activations_or_computes_them_again() {
    let plain = temporaries(None);
    let segments = [2, 3, 4, 1].map(|segment| temporaries(Some(segment)));
    println!("temporaries in MiB: {plain}, segments of 2, 3, 4, 1: {segments:?}");
    assert!(plain <= 72.0, "{plain} MiB");
    assert!(segments[0] <= 56.0 && segments[1] <= 48.0 && segments[2] <= 56.0, "{segments:?}");
    assert!(segments[3] >= plain - 8.0, "a segment of one layer gains nothing: {segments:?}");
}

#[test]
fn remat_mlp_does_the_forward_once_more() {
    let flops = |segment| {
        let joint = planned(&mlp(8, 4096, 512, segment)).0;
        [Stage::Forward, Stage::Recompute, Stage::Backward].map(|stage| joint.flops(stage))
    };
    let [forward, again, backward] = flops(None);
    assert_eq!(again, 0);
    for segment in [2, 4] {
        let [same, again, back] = flops(Some(segment));
        assert_eq!((same, back), (forward, backward));
        assert!(again <= forward, "at most the forward once more");
        // 8 products beside 8 forward and 15 backward: the input needs no cotangent. With it, 8 of 24.
        let more = again as f64 / (forward + backward) as f64;
        assert!((0.33..0.35).contains(&more), "segments of {segment}: {more}");
    }
}

#[test]
fn remat_mlp_says_why_segments_of_one_layer_gain_nothing() {
    let said = |segment| residual_table(&planned(&mlp(8, 4096, 512, Some(segment))).0, 9, 0);
    let idle = "checkpoint (7 times): no gain, since what it keeps at its boundary (8.0 MiB) is as \
                large as what it drops (8.0 MiB)";
    assert!(said(1).contains(idle), "{}", said(1));
    assert!(!said(2).contains("no gain"), "{}", said(2));
}

#[test]
fn explain_tells_forward_from_backward_and_where_the_peak_is() {
    let program = planned(&mlp(8, 4096, 512, Some(2))).1;
    let (_, text) = program.stages.iter().find(|(stage, _)| stage == "gradient").unwrap();
    for words in ["forward: ", "recompute: ", "backward: ", "residuals, ", "peak: "] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    // Four boundaries less the argument: three activations live from forward to backward.
    assert!(text.contains("3 residuals, 24.0 MiB from forward to backward"), "{text}");
    let plain = mlp(2, 64, 32, None);
    let donate = vec![false; plain.params.len()];
    let program = compile(&Arc::new(plain), &donate, &Options::default()).unwrap();
    assert!(program.stages.iter().all(|(stage, _)| stage != "gradient"));
}

#[test]
fn remat_cse_leaves_what_is_computed_again() {
    let dots = |segment| {
        let program = planned(&mlp(8, 64, 32, segment)).1;
        let is_dot = |k: &&vramlab_ir::Kernel| matches!(k.body, vramlab_ir::kernel::Body::Dot(_));
        program.kernels.iter().filter(is_dot).count()
    };
    // Forward 8, backward 8 for the weights and 7 for the activations.
    assert_eq!(dots(None), 23);
    // Of each segment of two the first product is done again, and the second for its tanh.
    assert_eq!(dots(Some(2)), 23 + 8);
}

#[test]
fn grad_residuals_of_that_gradient() {
    let joint = planned(&mlp(8, 4096, 512, None)).0;
    let made: Vec<_> = residuals(&joint).into_iter().filter(|r| r.param.is_none()).collect();
    assert_eq!(made.len(), 8);
    assert!(made.iter().all(|r| r.op == "tanh" && r.ty.bytes() == 8 << 20));
    let segments = planned(&mlp(8, 4096, 512, Some(4))).0;
    let made: Vec<_> = residuals(&segments).into_iter().filter(|r| r.param.is_none()).collect();
    assert_eq!(made.len(), 1, "the boundary between the two segments");
}

/// `layers` times max(conv(x, w), 0), padded so that space stays, and the sum.
fn convnet(layers: usize, examples: usize, size: usize, channels: usize) -> Func {
    let mut builder = FuncBuilder::new("convnet");
    let wide = Type::new(DType::F32, [examples, size, size, channels]);
    let mut x = builder.param(wide.clone());
    let filters = Type::new(DType::F32, [3, 3, channels, channels]);
    let ws: Vec<Value> = (0..layers).map(|_| builder.param(filters.clone())).collect();
    let ones = || Param::Ints(vec![1, 1]);
    for w in ws {
        let params = ["stride", "low", "high", "x_dilation", "w_dilation"]
            .iter()
            .fold(Params::new(), |params, name| params.with(*name, ones()));
        let product = builder.push(&vramlab_ops::CONV, params, &[x, w], None).unwrap()[0];
        let zero = Params::new()
            .with("value", Param::Literal(vramlab_ir::Literal::from_f64(DType::F32, 0.0)))
            .with("shape", Param::Shape(vramlab_ir::Shape::scalar()));
        let zero = builder.push(&vramlab_ops::FULL, zero, &[], None).unwrap()[0];
        let both = [product, zero];
        x = builder.push(&vramlab_ops::MAXIMUM, Params::new(), &both, None).unwrap()[0];
    }
    let axes = Param::Ints(vec![0, 1, 2, 3]);
    let sum = Params::new().with("axes", axes).with("keep", Param::Bool(false));
    let result = builder.push(&SUM, sum, &[x], None).unwrap()[0];
    builder.finish(vec![result])
}

#[test]
fn a_convnet_of_ten_layers_needs_no_more_than_under_jax() {
    let program = planned(&convnet(10, 8, 32, 32)).1;
    // benches/jax_temps.py, JAX 0.10.2 on the CPU.
    assert!(program.temp_bytes <= 23_068_672, "{} bytes", program.temp_bytes);
}

/// A program whose ops are listed as (op and parameters, operands, type); `%n` counts on from the
/// parameters.
fn listed(params: &[&str], ops: &[(&str, &[usize], &str)], results: &[usize]) -> String {
    let heads: Vec<String> =
        params.iter().enumerate().map(|(at, ty)| format!("%{at}: {ty}")).collect();
    let types: Vec<&str> = params.iter().copied().chain(ops.iter().map(|op| op.2)).collect();
    let given: Vec<&str> = results.iter().map(|&at| types[at]).collect();
    let mut text = format!("func f({}) -> ({}) {{\n", heads.join(", "), given.join(", "));
    for (at, (op, operands, ty)) in ops.iter().enumerate() {
        let operands: Vec<String> = operands.iter().map(|v| format!(" %{v}")).collect();
        text += &format!("  %{} = {op}{} : {ty}\n", params.len() + at, operands.concat());
    }
    let names: Vec<String> = results.iter().map(|at| format!(" %{at}")).collect();
    text + &format!("  return{}\n}}", names.concat())
}

fn parsed(text: &str) -> Func {
    vramlab_ir::parse(text, &vramlab_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn mib_of_temporaries(func: &Func, wrt: &[usize]) -> f64 {
    let joint = value_and_grad(func, wrt).unwrap().cotangents_only();
    let donate = vec![false; joint.func.params.len()];
    let program = compile(&Arc::new(joint.func), &donate, &Options::default()).unwrap();
    program.temp_bytes as f64 / MIB
}

const DOT_01: &str = "dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(0)]";
const DOT_11: &str = "dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(1)]";

/// One head of attention over `rows` tokens, gradients by the input and all weights.
fn attention(rows: usize) -> f64 {
    let [x, w] = [format!("f32[{rows},64]"), "f32[64,64]".to_string()];
    let [all, one] = [format!("f32[{rows},{rows}]"), format!("f32[{rows},1]")];
    let text = listed(
        &[&x, &w, &w, &w, &w],
        &[
            (DOT_01, &[0, 1], &x),
            (DOT_01, &[0, 2], &x),
            (DOT_01, &[0, 3], &x),
            (DOT_11, &[5, 6], &all),
            ("full[value=0.125:f32, shape=[]]", &[], "f32[]"),
            ("mul", &[8, 9], &all),
            ("max[axes=(1), keep=true]", &[10], &one),
            ("stop_gradient", &[11], &one),
            ("sub", &[10, 12], &all),
            ("exp", &[13], &all),
            ("sum[axes=(1), keep=true]", &[14], &one),
            ("div", &[14, 15], &all),
            (DOT_01, &[16, 7], &x),
            (DOT_01, &[17, 4], &x),
            ("sum[axes=(0, 1), keep=false]", &[18], "f32[]"),
        ],
        &[19],
    );
    mib_of_temporaries(&parsed(&text), &[0, 1, 2, 3, 4])
}

/// A GRU of 256 units over `steps` of 32 × 128, gradients by its two weights.
fn gru(steps: usize, checkpointed: bool) -> f64 {
    let part = |at: usize, rows: usize| {
        format!("slice[start=(0, {}), stop=({rows}, {}), step=(1, 1)]", at * 256, at * 256 + 256)
    };
    let (wide, deep, h) = ("f32[128,256]", "f32[256,256]", "f32[32,256]");
    let [w0, w1, w2] = [part(0, 128), part(1, 128), part(2, 128)];
    let [u0, u1, u2] = [part(0, 256), part(1, 256), part(2, 256)];
    let half = "full[value=0.5:f32, shape=[]]";
    let step = listed(
        &["f32[128,768]", "f32[256,768]", h, "f32[32,128]"],
        &[
            (&w0, &[0], wide),
            (&w1, &[0], wide),
            (&w2, &[0], wide),
            (&u0, &[1], deep),
            (&u1, &[1], deep),
            (&u2, &[1], deep),
            (DOT_01, &[3, 4], h),
            (DOT_01, &[2, 7], h),
            ("add", &[10, 11], h),
            (half, &[], "f32[]"),
            ("mul", &[12, 13], h),
            ("tanh", &[14], h),
            ("mul", &[15, 13], h),
            ("add", &[16, 13], h),
            (DOT_01, &[3, 5], h),
            (DOT_01, &[2, 8], h),
            ("add", &[18, 19], h),
            ("mul", &[20, 13], h),
            ("tanh", &[21], h),
            ("mul", &[22, 13], h),
            ("add", &[23, 13], h),
            (DOT_01, &[3, 6], h),
            (DOT_01, &[2, 9], h),
            ("mul", &[24, 26], h),
            ("add", &[25, 27], h),
            ("tanh", &[28], h),
            ("sub", &[2, 29], h),
            ("mul", &[17, 30], h),
            ("add", &[31, 29], h),
        ],
        &[32],
    );
    let body = match checkpointed {
        false => step,
        true => format!(
            "func b(%0: f32[128,768], %1: f32[256,768], %2: {h}, %3: f32[32,128]) -> ({h}) {{\n  %4 = \
             checkpoint[policy=\"nothing_saveable\", func={{\n{step}\n}}] %0 %1 %2 %3 : {h}\n  return \
             %4\n}}"
        ),
    };
    let text = format!(
        "func f(%0: f32[128,768], %1: f32[256,768], %2: {h}, %3: f32[{steps},32,128]) -> (f32[]) {{\n  \
         %4 = scan[body={{\n{body}\n}}, length={steps}, consts=2, carries=1, reverse=false] %0 %1 %2 %3 \
         : {h}\n  %5 = sum[axes=(0, 1), keep=false] %4 : f32[]\n  return %5\n}}"
    );
    mib_of_temporaries(&parsed(&text), &[0, 1])
}

/// Beside what JAX 0.10.2 plans on a CPU for the same programs (`benches/jax_temps.py`).
#[test]
fn temporaries_of_gradients_are_at_most_those_of_jax() {
    let found = [
        (
            "MLP of 8 layers",
            mib_of_temporaries(&mlp(8, 4096, 512, None), &[1, 2, 3, 4, 5, 6, 7, 8]),
            72.0,
        ),
        (
            "MLP of 64 layers",
            mib_of_temporaries(&mlp(64, 4096, 512, None), &(1..=64).collect::<Vec<_>>()),
            520.0,
        ),
        ("attention over 512", attention(512), 3.5),
        ("attention over 2048", attention(2048), 50.0),
        ("GRU of 64 steps", gru(64, false), 20.03),
        ("GRU of 64 steps, checkpointed", gru(64, true), 3.56),
        ("GRU of 1000 steps", gru(1000, false), 283.28),
        ("GRU of 1000 steps, checkpointed", gru(1000, true), 32.81),
    ];
    let lines: Vec<String> = found
        .iter()
        .map(|(name, mib, jax)| format!("{name}: {mib:.2} MiB, JAX {jax:.2} MiB\n"))
        .collect();
    println!("{}", lines.concat());
    let fits = |(_, mib, jax): &(&str, f64, f64)| mib <= jax;
    assert!(found.iter().all(fits), "{}", lines.concat());
}
