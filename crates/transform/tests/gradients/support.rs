//! Random numbers, and derivatives by central differences.

use vramlab_ir::{DType, Func, Tensor, Type, evaluate};
use vramlab_transform::{Joint, vjp};

/// SplitMix64: the same operands in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// In 0..1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn tensor(&mut self, ty: &Type, low: f64, high: f64) -> Tensor {
        let values: Vec<f64> = (0..ty.shape.elements())
            .map(|_| match ty.dtype {
                DType::Bool => self.below(2) as f64,
                dtype if dtype.is_integer() => self.below(4) as f64,
                _ => low + (high - low) * self.uniform(),
            })
            .collect();
        Tensor::from_f64(ty.dtype, ty.shape.clone(), &values).unwrap()
    }
}

pub fn floats(types: &[Type]) -> Vec<usize> {
    (0..types.len()).filter(|&at| types[at].dtype.is_float()).collect()
}

fn shifted(x: &Tensor, along: &Tensor, by: f64) -> Tensor {
    let values: Vec<f64> = x.to_f64().iter().zip(along.to_f64()).map(|(x, d)| x + by * d).collect();
    Tensor::from_f64(x.ty.dtype, x.ty.shape.clone(), &values).unwrap()
}

pub fn inner(a: &[Tensor], b: &[Tensor]) -> f64 {
    let dot = |(a, b): (&Tensor, &Tensor)| -> f64 {
        a.to_f64().iter().zip(b.to_f64()).map(|(a, b)| a * b).sum()
    };
    a.iter().zip(b).map(dot).sum()
}

/// Compares the product of random cotangents with the Jacobian to central differences along a
/// random direction. `None` where the function has no slope that can be measured there.
pub fn check(random: &mut Random, func: &Func, at: &[Tensor]) -> Option<Joint> {
    let wrt = floats(&func.param_types());
    let joint = vjp(func, &wrt).unwrap_or_else(|fault| panic!("{fault}\n{func}"));
    compare(random, func, &joint, at, &wrt)?;
    Some(joint)
}

/// As [`check`], for a joint program that is there.
pub fn compare(
    random: &mut Random,
    func: &Func,
    joint: &Joint,
    at: &[Tensor],
    wrt: &[usize],
) -> Option<()> {
    let results = func.result_types();
    let outs = floats(&results);
    let cotangents: Vec<Tensor> = results.iter().map(|ty| random.tensor(ty, -1.0, 1.0)).collect();
    let direction: Vec<Tensor> = wrt.iter().map(|&k| random.tensor(&at[k].ty, -1.0, 1.0)).collect();
    let moved = |by: f64| -> Vec<Tensor> {
        let mut arguments = at.to_vec();
        for (&k, along) in wrt.iter().zip(&direction) {
            arguments[k] = shifted(&at[k], along, by);
        }
        let all = evaluate(func, &arguments).unwrap();
        outs.iter().map(|&out| all[out].clone()).collect()
    };
    let chosen: Vec<Tensor> = outs.iter().map(|&out| cotangents[out].clone()).collect();
    let slope =
        |step: f64| (inner(&chosen, &moved(step)) - inner(&chosen, &moved(-step))) / (2.0 * step);
    let (wide, numeric) = (slope(2e-5), slope(1e-5));
    // Where two steps disagree, one of them crossed a kink, or the curve is too steep for both.
    if !numeric.is_finite() || (wide - numeric).abs() > 1e-7 * (1.0 + numeric.abs()) {
        return None;
    }
    let arguments: Vec<Tensor> = at.iter().chain(&cotangents).cloned().collect();
    let all = evaluate(&joint.func, &arguments).unwrap_or_else(|f| panic!("{f}\n{}", joint.func));
    let analytic = inner(&all[joint.results..], &direction);
    assert!(
        (numeric - analytic).abs() <= 1e-6 * (1.0 + numeric.abs()),
        "numeric {numeric}, by rule {analytic}\n{func}\n{}\nat {at:?}",
        joint.func
    );
    Some(())
}
