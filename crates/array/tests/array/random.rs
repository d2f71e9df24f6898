use crate::on;
use vramlab_array::prelude::*;

#[test]
fn a_seed_decides_every_number() {
    on(|_| {
        seed(7);
        let (a, b) = (randn([8]).to_vec::<f32>(), randn([8]).to_vec::<f32>());
        seed(7);
        assert_eq!(a, randn([8]).to_vec::<f32>());
        assert_eq!(b, randn([8]).to_vec::<f32>());
        assert_ne!(a, b);
        seed(8);
        assert_ne!(a, randn([8]).to_vec::<f32>());
    });
}

#[test]
fn draws_are_one_kernel_and_one_program() {
    on(|engine| {
        let _ = (randn([4]), randn([4]), uniform([4]), uniform([4]));
        assert_eq!(engine.compiles().len(), 2);
        assert_eq!(engine.runs(), ["randn", "randn", "uniform", "uniform"]);
    });
}

#[test]
fn uniform_numbers_fill_the_unit_interval() {
    on(|_| {
        seed(0);
        let x = uniform([20_000]).to_vec::<f64>();
        assert!(x.iter().all(|v| (0.0..1.0).contains(v) && (v * 8388608.0).fract() == 0.0));
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let k = randint([20_000], -2, 3).to_vec::<i32>();
        for value in -2..3 {
            let share = k.iter().filter(|&&v| v == value).count() as f64 / k.len() as f64;
            assert!((share - 0.2).abs() < 0.02, "{value}: {share}");
        }
    });
}

#[test]
fn normal_numbers_have_the_normal_distribution() {
    on(|_| {
        seed(3);
        let mut x = randn([20_000]).to_vec::<f64>();
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let fourth = x.iter().map(|v| (v - mean).powi(4)).sum::<f64>() / n / var.powi(2);
        assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.04, "{mean} {var}");
        assert!((fourth - 3.0).abs() < 0.2, "{fourth}");
        x.sort_by(f64::total_cmp);
        // The largest distance between the sample's and the true distribution function.
        let normal = |v: f64| 0.5 * (1.0 + vramlab_array::ir::eval::erf(v / 2f64.sqrt()));
        let distance = x
            .iter()
            .enumerate()
            .map(|(i, &v)| (normal(v) - (i as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.7 / n.sqrt(), "{distance}");
    });
}

#[test]
fn a_draw_inside_jit_belongs_to_the_trace() {
    on(|_| {
        let f = jit(|[x]| x + uniform([3]));
        let x = zeros([3]);
        assert_eq!(f([&x]).to_vec::<f32>(), f([&x]).to_vec::<f32>());
    });
}
