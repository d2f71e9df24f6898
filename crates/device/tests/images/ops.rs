//! Every op on every dtype, over moderate, random and special values, against its one-scalar meaning.

use crate::support::{Buffers, Random, launch};
use vramlab_device::cpu::Isa;
use vramlab_ir::kernel::{Access, Body, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{DType, Inst, Kernel, Literal, Reg, ScalarOp};

const OPS: [ScalarOp; 40] = {
    use ScalarOp::*;
    [
        Neg, Abs, Sign, Floor, Ceil, Round, Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tan,
        Tanh, Erf, Not, IsFinite, Add, Sub, Mul, Div, Rem, Pow, Atan2, Max, Min, And, Or, Xor,
        ShiftLeft, ShiftRight, Eq, Ne, Lt, Le, Gt, Ge, Select,
    ]
};

/// Whether cells can write the op on that dtype.
fn applies(op: ScalarOp, dtype: DType) -> bool {
    use ScalarOp::*;
    match op {
        And | Or | Xor | Not => !dtype.is_float(),
        ShiftLeft | ShiftRight => dtype.is_integer(),
        _ => true,
    }
}

fn flat(buffer: u32, dtype: DType) -> Access {
    Access { buffer, dtype, offset: 0, strides: vec![1], starts: Vec::new() }
}

fn map(
    name: String,
    reads: Vec<Access>,
    write: Access,
    columns: usize,
    insts: Vec<LoopInst>,
) -> Kernel {
    let result = Reg(insts.len() as u32 - 1);
    let sinks = vec![Sink::Store { write: 0, reg: result }];
    let buffers = (0..=reads.len() as u32).collect();
    let stages = vec![Stage { per: Per::Columns, insts, sinks }];
    let (outer, writes) = (Vec::new(), vec![write]);
    let body =
        Body::Rows(RowLoop { outer, columns, reads, writes, stages, kept: 0, row_scalars: 0 });
    Kernel { name, buffers, body, bytes_read: 0, bytes_written: 0, flops: 0 }
}

/// Values that are likely to go wrong, then random ones: two columns of operands.
fn operands(dtype: DType, random: &mut Random) -> Vec<(Literal, Literal)> {
    let special: Vec<f64> = match dtype {
        DType::Bool => vec![0.0, 1.0],
        d if d.is_float() => vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            1e-3,
            100.0,
            1e5,
            5e6,
            -3e7,
            1e-40,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            88.0,
            -88.0,
            3e38,
            0.25,
        ],
        _ => vec![0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 7.0, 31.0, 32.0, 33.0, 64.0, 200.0, 1e30, -1e30],
    };
    let literal = |value: f64| Literal::from_f64(dtype, value);
    let mut pairs = Vec::new();
    for &x in &special {
        pairs.extend(special.iter().map(|&y| (literal(x), literal(y))));
    }
    for _ in 0..700 {
        pairs.push((random.value(dtype), random.value(dtype)));
        let bits = |random: &mut Random| match dtype {
            DType::Bool => Literal::from_i64(dtype, random.below(2) as i64),
            _ => Literal::from_bits(dtype, random.bits()),
        };
        pairs.push((bits(random), bits(random)));
    }
    pairs
}

/// The error that is allowed, in units of the last place of the result.
fn allowed(op: ScalarOp, dtype: DType) -> f64 {
    use ScalarOp::*;
    let own = match op {
        Exp | Log | Sin | Cos | Sqrt | Add | Sub | Mul | Div | Pow | Log1p | Tan => 1.0,
        Tanh | Rsqrt | Expm1 => 2.0,
        Erf | Atan2 => 4.0,
        _ => 0.0,
    };
    // A 16-bit result that falls near the middle of two may round the other way.
    if dtype.size() == 2 && own > 0.0 { 1.0 } else { own }
}

fn ulps(dtype: DType, got: Literal, want: Literal) -> f64 {
    let (x, y) = (got.as_f64(), want.as_f64());
    if got == want || (x.is_nan() && y.is_nan()) || (x == 0.0 && y == 0.0 && !dtype.is_float()) {
        return 0.0;
    }
    if !dtype.is_float() || x.is_nan() || y.is_nan() {
        return f64::INFINITY;
    }
    // Bit patterns of one sign are ordered as their values.
    let sign = 1u64 << (8 * dtype.size() - 1);
    let ordered = |bits: u64| {
        let magnitude = (bits & (sign - 1)) as i64;
        if bits & sign == 0 { magnitude } else { -magnitude }
    };
    (ordered(got.bits()) - ordered(want.bits())).abs() as f64
}

fn check(op: ScalarOp, dtype: DType, isa: Isa) {
    let mut random = Random::new(op as u64 * 16 + dtype as u64 + 1);
    let pairs = operands(dtype, &mut random);
    let flags: Vec<Literal> = pairs.iter().map(|_| random.value(DType::Bool)).collect();
    let values: Vec<Vec<Literal>> = match op.arity() {
        1 => vec![pairs.iter().map(|pair| pair.0).collect()],
        2 => vec![
            pairs.iter().map(|pair| pair.0).collect(),
            pairs.iter().map(|pair| pair.1).collect(),
        ],
        _ => vec![
            flags,
            pairs.iter().map(|pair| pair.0).collect(),
            pairs.iter().map(|pair| pair.1).collect(),
        ],
    };
    let types: Vec<DType> = values.iter().map(|column| column[0].dtype()).collect();
    let mut insts: Vec<LoopInst> = Vec::new();
    for (input, &dtype) in types.iter().enumerate() {
        insts.push(LoopInst::Scalar(Inst::Input { input: input as u32, dtype }));
    }
    let args = (0..types.len() as u32).map(Reg).collect();
    insts.push(LoopInst::Scalar(Inst::Op { op, dtype, args }));
    let result = op.result(dtype);
    let reads = types.iter().enumerate().map(|(i, &dtype)| flat(i as u32, dtype)).collect();
    let write = flat(types.len() as u32, result);
    let kernel = map(format!("{op:?}"), reads, write, pairs.len(), insts);
    let bytes = |column: &Vec<Literal>| -> Vec<u8> {
        column.iter().flat_map(|x| x.to_bytes()[..x.dtype().size()].to_vec()).collect()
    };
    let mut buffers: Buffers = values.iter().map(bytes).collect();
    buffers.push(vec![0; pairs.len() * result.size()]);
    let results = launch(&kernel, &buffers, 1, isa).expect("the op runs");
    for (i, got) in results[types.len()].chunks_exact(result.size()).enumerate() {
        let args: Vec<Literal> = values.iter().map(|column| column[i]).collect();
        let (got, want) = (Literal::from_bytes(result, got), op.eval(dtype, &args));
        let error = ulps(result, got, want);
        assert!(
            error <= allowed(op, dtype),
            "{isa:?} {op:?} {args:?} = {got:?}, not {want:?}: {error} ulp"
        );
    }
}

#[test]
fn every_op_means_on_every_dtype_what_it_means_on_a_scalar() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for op in OPS {
            for dtype in DType::ALL.into_iter().filter(|&dtype| applies(op, dtype)) {
                check(op, dtype, isa);
            }
        }
    }
}

#[test]
fn conversions_agree_between_all_pairs_of_dtypes() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for from in DType::ALL {
            for to in DType::ALL {
                let mut random = Random::new(from as u64 * 16 + to as u64 + 1);
                let values: Vec<Literal> =
                    operands(from, &mut random).iter().map(|p| p.0).collect();
                let insts = vec![
                    LoopInst::Scalar(Inst::Input { input: 0, dtype: from }),
                    LoopInst::Scalar(Inst::Convert { from, to, arg: Reg(0) }),
                ];
                let kernel =
                    map("convert".into(), vec![flat(0, from)], flat(1, to), values.len(), insts);
                let bytes =
                    values.iter().flat_map(|x| x.to_bytes()[..from.size()].to_vec()).collect();
                let buffers = vec![bytes, vec![0; values.len() * to.size()]];
                let results = launch(&kernel, &buffers, 1, isa).expect("the conversion runs");
                for (value, got) in values.iter().zip(results[1].chunks_exact(to.size())) {
                    let (got, want) = (Literal::from_bytes(to, got), value.convert(to));
                    // Wide integers reach the 16-bit floats through f32, and so may round twice.
                    let twice = from.size() == 8 && to.size() == 2;
                    let error = ulps(to, got, want);
                    assert!(
                        error <= twice as u8 as f64,
                        "{isa:?} {value:?} as {to}: {got:?} {want:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn threefry_gives_the_known_words() {
    let cases = [([0u32, 0], 0u32), ([7, 9], 1), ([u32::MAX, 12345], 99)];
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for (key, counter) in cases {
            let args = [key[0], key[1], counter].map(|x| Literal::from_i64(DType::U32, x as i64));
            let mut insts: Vec<LoopInst> =
                args.iter().map(|&value| LoopInst::Scalar(Inst::Const(value))).collect();
            let registers = vec![Reg(0), Reg(1), Reg(2)];
            let op = Inst::Op { op: ScalarOp::Threefry, dtype: DType::U32, args: registers };
            insts.push(LoopInst::Scalar(op));
            let kernel = map("threefry".into(), vec![], flat(0, DType::U32), 3, insts);
            let results = launch(&kernel, &vec![vec![0; 12]], 1, isa).expect("it runs");
            let want = ScalarOp::Threefry.eval(DType::U32, &args);
            for got in results[0].chunks_exact(4) {
                assert_eq!(Literal::from_bytes(DType::U32, got), want);
            }
        }
    }
}
