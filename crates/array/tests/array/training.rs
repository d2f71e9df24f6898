//! Trees as parameters, and the optimisers over them.

use crate::{assert_values, fault, on};
use std::sync::{Arc, Mutex};
use vramlab_array::ir::{CompileKind, FaultKind};
use vramlab_array::prelude::*;
use vramlab_array::{Host, with_host};

tree! {
    struct Layer {
        w: Array,
        b: Array,
    }

    struct Net {
        layers: Vec<Layer>,
    }
}

fn net() -> Net {
    let layer = |inputs: usize, outputs: usize| Layer {
        w: full([inputs, outputs], 0.5),
        b: zeros([outputs]),
    };
    Net { layers: vec![layer(2, 3), layer(3, 1)] }
}

fn loss(net: &Net, [x, y]: [&Array; 2]) -> Array {
    let hidden = (x.dot(&net.layers[0].w) + &net.layers[0].b).tanh();
    (hidden.dot(&net.layers[1].w) + &net.layers[1].b - y).square().mean()
}

#[test]
fn a_gradient_by_a_tree_is_the_gradient_by_its_arrays() {
    on(|_| {
        let (net, x, y) = (net(), array([[1.0, 2.0]]), array([[0.25]]));
        let (value, tree) = value_and_grad_tree(loss)(&net, [&x, &y]);
        let flat = value_and_grad_wrt([0, 1, 2, 3], |[w0, b0, w1, b1, x, y]| {
            let layer = |w: &Array, b: &Array| Layer { w: w.clone(), b: b.clone() };
            loss(&Net { layers: vec![layer(w0, b0), layer(w1, b1)] }, [x, y])
        });
        let [a, b] = [&net.layers[0], &net.layers[1]];
        let (wanted, arrays) = flat([&a.w, &a.b, &b.w, &b.b, &x, &y]);
        assert_values(&value, &[wanted.item()]);
        let mut leaves = Vec::new();
        let again = grad_tree(loss)(&net, [&x, &y]);
        tree.leaves(&mut leaves);
        again.leaves(&mut leaves);
        assert_eq!(leaves.len(), 8);
        for (leaf, wanted) in leaves.iter().zip(arrays.iter().chain(&arrays)) {
            assert_eq!(leaf.ty(), wanted.ty());
            assert_values(leaf, &wanted.to_vec::<f64>());
        }
    });
}

#[test]
fn trees_of_other_structure_and_the_same_arrays_are_other_programs() {
    on(|_| {
        let f = jit_tree(|(a, b): &(Vec<Array>, Vec<Array>), []| {
            let sum = |arrays: &[Array]| arrays.iter().fold(zeros([1]), |sum, x| sum + x);
            sum(a) - sum(b)
        });
        let two = || vec![ones([1]), ones([1])];
        assert_values(&f(&(two(), vec![ones([1])]), []), &[1.0]);
        assert_values(&f(&(vec![ones([1])], two()), []), &[-1.0]);
    });
}

#[test]
fn a_training_step_compiles_once_and_reuses_what_was_moved_in() {
    on(|engine| {
        let gradient = value_and_grad_tree(loss);
        let step = jit_update(move |(p, s): &(Net, (Net, Net, Array)), [x, y, lr]| {
            let (loss, grads) = gradient(p, [x, y]);
            (adam(p, &grads, s, lr), loss)
        });
        let (x, y) = (array([[1.0, 2.0], [-1.0, 0.5]]), array([[0.25], [-0.5]]));
        let params = net();
        let state = adam_init(&params);
        let first = params.layers[0].w.alias();
        let mut all = (params, state);
        let mut losses: Vec<f64> = Vec::new();
        let mut compiles = 0;
        for at in 0..20 {
            let rate = full((), 0.05 / (1.0 + f64::from(at)));
            let loss;
            (all, loss) = step(all, [&x, &y, &rate]);
            losses.push(loss.item());
            let jits = |kind: &CompileKind| matches!(kind, CompileKind::Jit);
            let own = engine.compiles().iter().filter(|(_, kind)| jits(kind)).count();
            if at == 0 {
                compiles = own;
            }
            assert_eq!(own, compiles, "step {at}");
        }
        assert_eq!(compiles, 1);
        assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
        assert!(first.is_donated(), "the tree was kept");
        assert_values(&all.1.2, &[20.0]);
    });
}

/// Two steps by hand, as the paper has them.
#[test]
fn adam_is_the_papers() {
    on(|_| {
        for decay in [0.0, 0.1] {
            let (mut p, mut m, mut v) = (1.5f64, 0.0f64, 0.0f64);
            let mut tree = (array([1.5]),);
            let mut state = adam_init(&tree);
            for (at, g) in [0.3f64, -0.7, 0.2].into_iter().enumerate() {
                let t = at as i32 + 1;
                m = 0.9 * m + 0.1 * g;
                v = 0.999 * v + 0.001 * g * g;
                let (mean, square) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
                p -= 0.01 * (mean / (square.sqrt() + 1e-8) + decay * p);
                let grads = (array([g]),);
                (tree, state) = match decay > 0.0 {
                    true => adamw(&tree, &grads, &state, 0.01, decay),
                    false => adam(&tree, &grads, &state, full((), 0.01)),
                };
                let found: f64 = tree.0.to_vec::<f64>()[0];
                assert!((found - p).abs() < 1e-5, "step {t}: {found}, wanted {p}");
            }
            assert_eq!(state.2.dtype(), DType::I32);
        }
    });
}

#[test]
fn a_rate_keeps_the_parameters_element_type() {
    on(|_| {
        let p = ones([2]).convert(DType::F64);
        let stepped = sgd(&p, &p, full((), 0.5));
        assert_eq!(stepped.dtype(), DType::F64);
        assert_values(&stepped, &[0.5, 0.5]);
        assert_values(&sgd(&p, &p, 0.25), &[0.75, 0.75]);
    });
}

#[test]
fn cross_entropy_is_the_mean_of_minus_the_logarithm() {
    on(|_| {
        let logits = array([[1.0, 2.0, 3.0], [0.5, 0.0, f64::NEG_INFINITY]]);
        let log = |row: &[f64], at: usize| row[at] - row.iter().map(|x| x.exp()).sum::<f64>().ln();
        let wanted = -(log(&[1.0, 2.0, 3.0], 2) + log(&[0.5, 0.0, f64::NEG_INFINITY], 0)) / 2.0;
        assert_values(&cross_entropy(&logits, array([2, 0])), &[wanted]);
        let flat = zeros([2, 4]);
        let d = grad(|[l]| cross_entropy(l, array([1, 3])))([&flat]);
        let [off, on] = [0.125, -0.375];
        assert_values(&d, &[off, on, off, off, off, off, off, on]);
    });
}

#[test]
fn what_does_not_fit_is_named_by_its_path() {
    on(|_| {
        let p = (ones([2]), vec![ones([3])]);
        let found = fault(|| sgd(&p, &(ones([2]), vec![ones([4])]), 0.1));
        assert_eq!(found.kind, FaultKind::Shape);
        assert!(found.to_string().contains("params.1[0] is f32[3]"), "{found}");
        let found = fault(|| sgd(&p, &(ones([2]), vec![]), 0.1));
        assert!(found.to_string().contains("params.1 has 1 elements"), "{found}");
        let found = fault(|| sgd(&p, &p, ones([2])));
        assert!(found.to_string().contains("learning rate"), "{found}");
        let whole = (ones([2]), array([1, 2]));
        let g = grad_tree(|p: &(Array, Array), []| (&p.0 * &p.1).sum());
        let found = fault(|| g(&whole, []));
        assert!(found.to_string().contains("params.1 is i32[2]"), "{found}");
        assert!(fault(|| cross_entropy(zeros([2, 3]), zeros([2]))).to_string().contains("labels"));
        assert!(fault(|| cross_entropy(zeros([2, 3]), array([1]))).to_string().contains("labels"));
    });
}

/// Keeps what a cell prints.
#[derive(Default)]
struct Printed(Mutex<String>);

impl Host for Printed {
    fn stdout(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn display(&self, text: &str) {
        self.stdout(text);
    }

    fn input(&self, _prompt: &str) -> Result<String, vramlab_array::ir::Fault> {
        Ok(String::new())
    }

    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn a_progress_bar_writes_over_itself_and_ends_its_line() {
    let host = Arc::new(Printed::default());
    with_host(Arc::clone(&host) as Arc<dyn Host>, || {
        progress(1, 2, "half");
        progress(3usize, 2usize, "all");
        progress(0, 0, "nothing to do");
    });
    let text = host.0.lock().unwrap().clone();
    let lines: Vec<&str> = text.split('\r').skip(1).collect();
    assert_eq!(lines.len(), 3, "{text:?}");
    assert!(lines[0].starts_with("████████████░░░░░░░░░░░░ 1/2 half"), "{text:?}");
    assert!(lines[1].contains("████████████████████████ 2/2 all") && lines[1].ends_with('\n'));
    assert!(lines[2].contains(" 0/1 nothing to do"), "{text:?}");
}
