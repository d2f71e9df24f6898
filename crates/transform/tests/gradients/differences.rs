//! Every entry of the op table, by random applications: first and second derivatives. What holds
//! functions is in `programs.rs` and `control.rs`.

use crate::support::{Random, check, compare, floats, inner};
use vramlab_ir::{
    DType, Func, FuncBuilder, Gradient, Param, Params, Primitive, Shape, Tensor, Type, evaluate,
};
use vramlab_ops::{Entry, Format, Operands, entries};
use vramlab_transform::{Joint, jvp, vjp};

/// Operand types and parameters that the op takes, floats in f64.
pub struct Application {
    pub inputs: Vec<Type>,
    pub params: Params,
}

fn shape(random: &mut Random) -> Shape {
    let rank = random.pick(&[0, 1, 1, 2, 2, 3]);
    Shape::new((0..rank).map(|_| random.pick(&[1, 2, 3, 4])).collect::<Vec<usize>>())
}

fn operands(random: &mut Random, entry: &Entry) -> Vec<Type> {
    let count = match entry.operands {
        Operands::Exactly(n) => n,
        Operands::AtLeast(n) => n + random.below(3),
    };
    let common = shape(random);
    let leading = random.pick(&[1, 2]);
    let dtype = random.pick(&[DType::F64, DType::F64, DType::F64, DType::Bool, DType::U32]);
    (0..count)
        .map(|operand| match random.below(8) {
            0 if operand == 0 => Type::new(DType::Bool, common.clone()),
            1 | 2 => Type::new(DType::F64, shape(random)),
            3 | 4 if operand >= leading => Type::new(DType::I32, []),
            5 if operand > 0 => Type::new(DType::I32, [3, 1]),
            6 if operand > 0 => Type::new(DType::F64, []),
            _ => Type::new(dtype, common.clone()),
        })
        .collect()
}

fn param(random: &mut Random, format: Format, inputs: &[Type]) -> Param {
    let rank = inputs.first().map_or(0, |ty| ty.shape.rank());
    match format {
        Format::Bool => Param::Bool(random.below(2) == 1),
        Format::Int => Param::Int(random.below(3) as i64),
        Format::Ints => {
            let length = if random.below(5) < 3 { rank } else { random.below(3) };
            Param::Ints((0..length).map(|_| random.below(4) as i64).collect())
        }
        Format::Literal => Param::Literal(vramlab_ir::Literal::from_f64(DType::F64, 1.5)),
        Format::DType => Param::DType(DType::F64),
        Format::Shape => Param::Shape(match inputs.first() {
            // What fills a reshape or a broadcast more often than chance would.
            Some(ty) if random.below(3) > 0 => {
                let mut dims = ty.shape.to_vec();
                match random.below(3) {
                    0 => dims.insert(0, random.pick(&[1, 2])),
                    1 => dims.iter_mut().filter(|d| **d == 1).for_each(|d| *d = 3),
                    _ => dims.reverse(),
                }
                Shape::new(dims)
            }
            _ => shape(random),
        }),
        // A name, or a memory kind.
        Format::Text => Param::Text(["device", "pinned_host"][random.below(2)].into()),
        Format::Func => unreachable!("not drawn"),
    }
}

/// What chance would not find: filters that fit.
fn convolution(random: &mut Random) -> Application {
    loop {
        let space = random.pick(&[1, 1, 2]);
        let [n, c, o] = [0; 3].map(|_| random.pick(&[1, 2, 3]));
        let mut draw = |from: &[usize]| (0..space).map(|_| random.pick(from)).collect::<Vec<_>>();
        let (x, w) = (draw(&[1, 2, 3, 4, 5]), draw(&[1, 2, 3]));
        let mut ints = |from: &[i64]| Param::Ints((0..space).map(|_| random.pick(from)).collect());
        let params = Params::new()
            .with("stride", ints(&[1, 1, 2, 3]))
            .with("low", ints(&[0, 0, 1, 2, -1]))
            .with("high", ints(&[0, 0, 1, 2, -1]))
            .with("x_dilation", ints(&[1, 1, 2, 3]))
            .with("w_dilation", ints(&[1, 1, 2]));
        let inputs = vec![
            Type::new(DType::F64, [&[n], x.as_slice(), &[c]].concat()),
            Type::new(DType::F64, [w.as_slice(), &[c, o]].concat()),
        ];
        if vramlab_ops::CONV.infer(&inputs, &params).is_ok() {
            return Application { inputs, params };
        }
    }
}

pub fn application(random: &mut Random, entry: &'static Entry) -> Option<Application> {
    for _ in 0..4000 {
        if entry.name == vramlab_ops::CONV.name {
            return Some(convolution(random));
        }
        let inputs = operands(random, entry);
        let params = entry.params.iter().fold(Params::new(), |params, spec| {
            params.with(spec.name, param(random, spec.format, &inputs))
        });
        match entry.infer(&inputs, &params) {
            Ok(results) if results[0].shape.elements() > 0 => {
                return Some(Application { inputs, params });
            }
            _ => {}
        }
    }
    None
}

pub fn program(entry: &'static Entry, application: &Application) -> Func {
    let mut builder = FuncBuilder::new(entry.name);
    let values: Vec<_> = application.inputs.iter().map(|ty| builder.param(ty.clone())).collect();
    let results = builder.push(entry, application.params.clone(), &values, None).unwrap();
    builder.finish(results)
}

/// Where to try: inside the domain of logarithms and roots, and on both sides of zero.
const RANGES: [(f64, f64); 2] = [(0.3, 1.4), (-1.4, 1.4)];

#[test]
fn every_entry_of_the_table_agrees_with_central_differences() {
    let mut random = Random(3);
    let held = |entry: &&Entry| entry.params.iter().any(|spec| spec.format == Format::Func);
    for entry in entries().filter(|entry| !held(entry)) {
        let mut compared = 0;
        for round in 0..100 {
            let Some(tried) = application(&mut random, entry) else { break };
            let func = program(entry, &tried);
            let (low, high) = RANGES[round % 2];
            let at: Vec<Tensor> =
                tried.inputs.iter().map(|ty| random.tensor(ty, low, high)).collect();
            if floats(&func.result_types()).is_empty() || floats(&tried.inputs).is_empty() {
                // Nothing flows, and the program of the gradient is there all the same.
                vjp(&func, &floats(&tried.inputs)).unwrap();
                compared += (entry.gradient() != Gradient::Rule) as usize;
                continue;
            }
            match entry.gradient() {
                Gradient::None(why) => {
                    let fault = vjp(&func, &floats(&tried.inputs)).unwrap_err();
                    assert!(fault.message.contains(why), "{fault}");
                    assert_eq!(fault.op, entry.name);
                    compared += 1;
                }
                // Its slope is not zero; that it is taken for zero is its whole meaning.
                _ if entry.name == "stop_gradient" => compared += 1,
                _ => compared += second_order(&mut random, &func, &at) as usize,
            }
        }
        assert!(compared >= 20, "{}: only {compared} random applications compared", entry.name);
    }
}

/// The gradient, the gradient of the gradient, and the derivative forward.
fn second_order(random: &mut Random, func: &Func, at: &[Tensor]) -> bool {
    let Some(first) = check(random, func, at) else { return false };
    let cotangents: Vec<Tensor> =
        func.result_types().iter().map(|ty| random.tensor(ty, -1.0, 1.0)).collect();
    let arguments: Vec<Tensor> = at.iter().cloned().chain(cotangents).collect();
    check(random, &first.func, &arguments);
    let wrt = floats(&func.param_types());
    let forward = jvp(func, &wrt).unwrap();
    let tangents: Vec<Tensor> = wrt.iter().map(|&k| random.tensor(&at[k].ty, -1.0, 1.0)).collect();
    let arguments: Vec<Tensor> = at.iter().cloned().chain(tangents).collect();
    duality(random, &first, &forward, at, &arguments[at.len()..]);
    let again = vjp(&forward.func, &floats(&forward.func.param_types())).unwrap();
    let all = floats(&forward.func.param_types());
    compare(random, &forward.func, &again, &arguments, &all);
    true
}

/// The same Jacobian from both sides: cotangents · (J · tangents) = (cotangents · J) · tangents.
fn duality(random: &mut Random, back: &Joint, forward: &Joint, at: &[Tensor], tangents: &[Tensor]) {
    let results = &back.func.result_types()[..back.results];
    let outs = floats(results);
    let cotangents: Vec<Tensor> = results.iter().map(|ty| random.tensor(ty, -1.0, 1.0)).collect();
    let run = |joint: &Joint, behind: &[Tensor]| {
        let arguments: Vec<Tensor> = at.iter().chain(behind).cloned().collect();
        evaluate(&joint.func, &arguments).unwrap().split_off(joint.results)
    };
    let moved = run(forward, tangents);
    let pulled = run(back, &cotangents);
    let (left, right) = (
        outs.iter().map(|&out| inner(&cotangents[out..=out], &moved[out..=out])).sum::<f64>(),
        inner(&pulled, tangents),
    );
    let near = (left - right).abs() <= 1e-9 * (1.0 + left.abs());
    assert!(near || !left.is_finite(), "{left} or {right}\n{}\n{}", back.func, forward.func);
}
