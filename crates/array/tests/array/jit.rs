use crate::{assert_values, fault, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vramlab_array::ir::{CompileKind, FaultKind};
use vramlab_array::prelude::*;

#[test]
fn a_function_is_traced_once_for_each_set_of_types() {
    on(|engine| {
        let traces = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&traces);
        let f = jit(move |[x, w]| {
            count.fetch_add(1, Ordering::Relaxed);
            x.dot(w).tanh()
        });
        let (x, w) = (ones([2, 3]), ones([3, 4]));
        let y = f([&x, &w]);
        assert_values(&y, &[3f64.tanh(); 8]);
        let _ = (f([&x, &w]), f.call((x.clone(), &w)), f.call(vec![&x, &w]));
        assert_eq!(traces.load(Ordering::Relaxed), 1);
        let _ = f([&ones([5, 3]), &w]);
        assert_eq!(traces.load(Ordering::Relaxed), 2);
        let jitted = engine.compiles().iter().filter(|c| c.1 == CompileKind::Jit).count();
        assert_eq!(jitted, 3, "two sets of types, and one with a moved argument");
    });
}

#[test]
fn moved_arguments_are_donated_and_borrowed_ones_stay() {
    on(|engine| {
        let step = jit(|[w, g]| w - g * 0.5);
        let (w, g) = (ones([4]), ones([4]));
        let kept = w.clone();
        let before = engine.claims();
        let w = step.call((w, &g));
        assert_eq!(engine.claims(), before);
        assert_values(&w, &[0.5; 4]);
        assert_values(&kept, &[1.0; 4]);
        assert_values(&step.call([w, g]), &[0.0; 4]);
    });
}

#[test]
fn a_failed_call_donates_nothing() {
    on(|engine| {
        let f = jit(|[x]| x * 2.0);
        let x = ones([2]);
        let kept = x.alias();
        engine.refuse(true);
        assert_eq!(fault(|| f.call((x,))).kind, FaultKind::OutOfMemory);
        engine.refuse(false);
        assert!(!kept.is_donated());
        assert_values(&kept, &[1.0; 2]);
        let gone = kept.alias();
        let _ = f.call((kept,));
        assert!(gone.is_donated());
        assert_eq!(fault(|| gone.sum()).kind, FaultKind::Donated);
    });
}

#[test]
fn a_captured_array_is_one_hidden_argument() {
    on(|engine| {
        let w = full([3], 2.0);
        let f = jit(move |[x]| (x * &w + &w) * zeros([3]).cos());
        let before = engine.live_bytes();
        assert_values(&f([&ones([3])]), &[4.0; 3]);
        assert_eq!(engine.live_bytes(), before, "nothing is held beside what was captured");
        assert!(engine.owners().contains(&"captured by jit".to_string()));
        f.core().set_name("f");
        let text = f.lower([&ones([3])]);
        assert_eq!(text.matches("f32[3]").next(), Some("f32[3]"));
        assert!(text.contains("full"), "zeros inside are part of the program: {text}");
    });
}

#[test]
fn results_may_be_trees() {
    on(|_| {
        let f = jit(|[x]| (x + 1.0, [x * 2.0, x * 3.0], vec![x.sum()]));
        let (a, [b, c], d) = f([&ones([2])]);
        assert_values(&a, &[2.0; 2]);
        assert_values(&b, &[2.0; 2]);
        assert_values(&c, &[3.0; 2]);
        assert_eq!(d[0].item(), 2.0);
        let nothing = jit(|[x]| drop(x.sum()));
        nothing([&ones([2])]);
        let same = jit(|[x]| (x.clone(), x.clone()));
        let x = ones([2]);
        let (p, q) = same([&x]);
        assert_values(&(p + q + &x), &[3.0; 2]);
    });
}

#[test]
fn functions_of_many_parameters_and_jits_inside_jits() {
    fn net([x, ws @ ..]: [&Array; 9]) -> Array {
        let mut h = x.tanh();
        for w in ws {
            h = h.dot(w).tanh();
        }
        h.sum()
    }
    on(|engine| {
        let w = eye(3) * 0.5;
        let x = ones([2, 3]);
        let f = jit(net);
        let by_vec = f.call(vec![&x, &w, &w, &w, &w, &w, &w, &w, &w]);
        let eager = net([&x, &w, &w, &w, &w, &w, &w, &w, &w]);
        assert_values(&by_vec, &[eager.item()]);
        assert_eq!(fault(|| f.call(vec![&x, &w])).kind, FaultKind::Argument);
        let inner = jit(|[x]| x.tanh());
        let outer = jit(move |[x]| inner([x]) + inner([&(x * 2.0)]));
        let before = engine.compiles().len();
        assert_values(&outer([&ones([1])]), &[1f64.tanh() + 2f64.tanh()]);
        assert_eq!(engine.compiles().len() - before, 2, "ones, and one program for both");
    });
}

#[test]
fn a_trace_has_no_data_and_unwinds_cleanly() {
    on(|engine| {
        let f = jit(|[x]| x * x.sum().item());
        let read = fault(|| f([&ones([2])]));
        assert_eq!((read.kind, read.op.as_str()), (FaultKind::Trace, "item"));
        assert!(read.help.is_some());
        let clash = fault(|| jit(|[x]| x + zeros([3]))([&ones([2])]));
        assert_eq!((clash.kind, clash.op.as_str()), (FaultKind::Shape, "add"));
        assert!(clash.message.contains("f32[2] and f32[3]"));
        let panicked =
            fault(|| jit(|[x]| if x.len() > 1 { panic!("no") } else { x.sum() })([&ones([2])]));
        assert_eq!((panicked.kind, panicked.message.as_str()), (FaultKind::Panic, "no"));
        // Eager again, and nothing is left.
        assert_values(&(ones([2]) + 1.0), &[2.0; 2]);
        assert_eq!(engine.claims(), 0);
    });
}

#[test]
fn a_value_that_leaves_its_trace_is_refused() {
    on(|_| {
        let leak: Arc<std::sync::Mutex<Vec<Array>>> = Arc::default();
        let inside = Arc::clone(&leak);
        let f = jit(move |[x]| {
            inside.lock().unwrap().push(x.alias());
            x * 2.0
        });
        let _ = f([&ones([2])]);
        let leaked = leak.lock().unwrap().pop().unwrap();
        assert_eq!(fault(|| &leaked + 1.0).kind, FaultKind::Trace);
        assert_eq!(fault(|| jit(|[x]| x * 1.0)([&leaked])).kind, FaultKind::Trace);
        let g = jit(move |[x]| x + &leaked);
        assert_eq!(fault(|| g([&ones([2])])).kind, FaultKind::Trace);
    });
}

#[test]
fn a_cleared_cache_compiles_again() {
    on(|engine| {
        let f = jit(|[x]| x.tanh());
        let x = ones([2]);
        let _ = f([&x]);
        clear_caches();
        let before = engine.compiles().len();
        assert_values(&f([&x]), &[1f64.tanh(); 2]);
        assert_values(&(&x + 1.0), &[2.0; 2]);
        assert_eq!(engine.compiles().len() - before, 2);
    });
}

#[test]
fn what_a_call_would_run_is_told_without_running() {
    on(|engine| {
        let f = jit(|[x, y]| x + y);
        assert_eq!(fault(|| f.memory_analysis()).kind, FaultKind::Argument);
        let (x, y) = (ones([2]), ones([2]));
        let before = engine.runs().len();
        assert!(f.lower([&x, &y]).contains("add"));
        let told = f.donations([&x, &y]);
        assert_eq!(told, "argument 0: used, the first\nargument 1: not used, the first\n");
        assert_eq!(engine.runs().len(), before);
        let _ = f([&x, &y]);
        assert!(f.explain().contains("add"));
        assert_eq!(f.memory_analysis(), MemoryAnalysis::default());
    });
}
