//! The text form under random damage, and exactness of what it holds. Here and not in `ir`, because
//! the parser wants ops.

use std::sync::Arc;
use vramlab_ir::{DType, Func, FuncBuilder, Literal, Param, Params, Shape, Type, parse, verify};
use vramlab_ops::lookup;

fn push(builder: &mut FuncBuilder, op: &str, params: Params, inputs: &[u32]) {
    let inputs: Vec<_> = inputs.iter().map(|&v| vramlab_ir::Value(v)).collect();
    builder.push(lookup(op).unwrap(), params, &inputs, None).unwrap();
}

/// A program with every format of parameter.
fn rich() -> Func {
    let matrix = Type::new(DType::F32, [4, 3]);
    let mut inner = FuncBuilder::new("<closure>");
    let x = inner.param(matrix.clone());
    push(&mut inner, "tanh", Params::new(), &[0]);
    let inner = inner.finish(vec![x, vramlab_ir::Value(1)]);
    let mut builder = FuncBuilder::new("rich");
    builder.param(matrix);
    builder.param(Type::new(DType::F32, [3]));
    push(&mut builder, "add", Params::new(), &[0, 1]);
    let value = Literal::from_bits(DType::F32, 0x7fc0_0001);
    let full = Params::new()
        .with("value", Param::Literal(value))
        .with("shape", Param::Shape(Shape::scalar()));
    push(&mut builder, "full", full, &[]);
    let sum = Params::new().with("axes", Param::Ints(vec![0, 1])).with("keep", Param::Bool(false));
    push(&mut builder, "sum", sum, &[2]);
    push(&mut builder, "convert", Params::new().with("dtype", Param::DType(DType::BF16)), &[4]);
    let iota = Params::new()
        .with("dtype", Param::DType(DType::I32))
        .with("shape", Param::Shape(Shape::from([4])))
        .with("axis", Param::Int(0));
    push(&mut builder, "iota", iota, &[]);
    let call = Params::new()
        .with("kind", Param::Text("jit".into()))
        .with("func", Param::Func(Arc::new(inner)));
    push(&mut builder, "call", call, &[2]);
    builder.finish([3, 5, 6, 8].map(vramlab_ir::Value).to_vec())
}

#[test]
fn a_program_with_every_parameter_format_prints_and_parses() {
    let func = rich();
    let text = func.to_string();
    let want = r#"func rich(%0: f32[4,3], %1: f32[3]) -> (f32[], bf16[], i32[4], f32[4,3]) {
  %2 = add %0 %1 : f32[4,3]
  %3 = full[value=0x7fc00001:f32, shape=[]] : f32[]
  %4 = sum[axes=(0, 1), keep=false] %2 : f32[]
  %5 = convert[dtype=bf16] %4 : bf16[]
  %6 = iota[dtype=i32, shape=[4], axis=0] : i32[4]
  %7 %8 = call[kind="jit", func={
    func "<closure>"(%0: f32[4,3]) -> (f32[4,3], f32[4,3]) {
      %1 = tanh %0 : f32[4,3]
      return %0 %1
    }
  }] %2 : f32[4,3], f32[4,3]
  return %3 %5 %6 %8
}"#;
    assert_eq!(text, want);
    let again = parse(&text, &lookup).unwrap();
    assert_eq!(again, func);
    assert_eq!(verify(&again), Ok(()));
}

#[test]
fn gaps_in_the_numbering_close_when_printed() {
    let text = "func f(%7: f32[]) -> (f32[]) { %9 = neg %7 : f32[] return %9 }";
    let func = parse(text, &lookup).unwrap();
    let printed = func.to_string();
    assert!(printed.contains("%1 = neg %0"), "{printed}");
    assert_eq!(parse(&printed, &lookup).unwrap(), func);
}

#[test]
fn every_literal_survives_the_text() {
    let words = [0u64, 1, 2, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0000, 0x8000_0000];
    let wide =
        [u64::MAX, 1 << 63, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x3fb9_9999_9999_999a];
    let mut word = 0x2545_f491_4f6c_dd1du64;
    let random = std::iter::repeat_with(|| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    });
    let bits: Vec<u64> = words.into_iter().chain(wide).chain(random.take(3000)).collect();
    for dtype in DType::ALL {
        for &bits in &bits {
            let bits = if dtype == DType::Bool { bits & 1 } else { bits };
            let literal = Literal::from_bits(dtype, bits);
            let mut builder = FuncBuilder::new("f");
            let params = Params::new()
                .with("value", Param::Literal(literal))
                .with("shape", Param::Shape(Shape::scalar()));
            push(&mut builder, "full", params, &[]);
            let func = builder.finish(vec![vramlab_ir::Value(0)]);
            assert_eq!(parse(&func.to_string(), &lookup).unwrap(), func, "{func}");
        }
    }
}

#[test]
fn damaged_texts_are_refused_in_words_or_still_round_trip() {
    let text = rich().to_string();
    let characters: Vec<char> = text.chars().collect();
    let alphabet: Vec<char> = "%=:,()[]{}\"\\; \n09af-.xué".chars().collect();
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((state >> 33) % n as u64) as usize
    };
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut damaged = characters.clone();
        for _ in 0..1 + below(3) {
            let at = below(damaged.len());
            match below(4) {
                0 => drop(damaged.remove(at)),
                1 => damaged.insert(at, alphabet[below(alphabet.len())]),
                2 => damaged[at] = alphabet[below(alphabet.len())],
                _ => damaged.truncate(at.max(8)),
            }
        }
        let damaged: String = damaged.into_iter().collect();
        match parse(&damaged, &lookup) {
            Ok(func) => {
                parsed += 1;
                let _ = verify(&func);
                let printed = func.to_string();
                assert_eq!(parse(&printed, &lookup).unwrap().to_string(), printed);
            }
            Err(error) => {
                let line = damaged.split('\n').nth(error.line as usize - 1);
                let width = line.map(|line| line.chars().count() as u32);
                assert!(width.is_some_and(|width| error.column <= width + 1), "{error}\n{damaged}");
            }
        }
    }
    assert!(parsed > 100, "only {parsed} damaged texts parsed: the damage is too great to tell");
}

#[test]
fn functions_nested_without_end_are_refused() {
    let text = "func f() -> () { () = call[func={".repeat(100_000);
    let error = parse(&text, &lookup).unwrap_err();
    assert_eq!(error.message, "functions are nested deeper than 64");
}

#[test]
fn errors_say_line_and_column_in_characters() {
    let text = "func \"é\"(%0: f32[3]) -> (f32[3]) {\n  %1 = tahn %0 : f32[3]\n  return %1\n}";
    let error = parse(text, &lookup).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 8: unknown op `tahn`");
}
