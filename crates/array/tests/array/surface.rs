//! The surface table: each name has words and an example, and its dynamic entry gives what the
//! typed function gives.

use crate::{assert_values, on};
use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use vramlab_array::Structure;
use vramlab_array::ir::{Fault, FaultKind};
use vramlab_array::prelude::*;
use vramlab_array::surface::{
    BOUNDS, Callable, Dyn, Operator, Place, RECORDS, items, lookup, named, negate, operator,
};

const ARRAY: Place = Place::Method("Array");

fn call(place: Place, name: &str, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    (lookup(place, name).expect("a name of the table").call)(arguments)
}

fn array_of(value: Result<Dyn, Fault>) -> Array {
    match value {
        Ok(Dyn::Array(array)) => array,
        other => panic!("not an array: {other:?}"),
    }
}

fn list(values: &[i128]) -> Dyn {
    Dyn::List(values.iter().map(|&value| Dyn::Int(value)).collect())
}

#[test]
fn every_name_is_there_once_with_words_and_an_example() {
    let mut seen = HashSet::new();
    for item in items() {
        assert!(seen.insert((item.place, item.name)), "{} twice", item.name);
        assert!(!item.doc.is_empty() && !item.example.is_empty(), "{}", item.name);
        let keyword = if item.place == Place::Constant { "const " } else { "fn " };
        let head = format!("{keyword}{}", item.name);
        assert!(item.signature.starts_with(&head), "{}", item.signature);
        assert_eq!(
            matches!(item.place, Place::Method(_)),
            ["(&self", "(self"].iter().any(|own| item.signature.contains(own)),
            "{}",
            item.signature
        );
        assert!(lookup(item.place, item.name).is_some());
    }
    assert!(seen.len() > 250, "{}", seen.len());
    assert_eq!(named("tanh").len(), 2);
}

#[test]
fn every_bound_in_a_signature_is_explained() {
    for item in items() {
        for part in item.signature.split("impl ").skip(1) {
            let known =
                BOUNDS.iter().any(|(bound, _)| part.starts_with(bound)) || part.starts_with("Fn");
            assert!(known, "{}", item.signature);
        }
    }
}

#[test]
fn records_have_the_fields_that_are_declared() {
    on(|_| {
        let stats = call(Place::Function, "memory_stats", vec![]).unwrap();
        let Dyn::Record { name, fields } = stats else { panic!("not a record") };
        let record = RECORDS.iter().find(|record| record.name == name).unwrap();
        let declared: Vec<&str> = record.fields.iter().map(|field| field.0).collect();
        let found: Vec<&str> = fields.iter().map(|field| field.0).collect();
        assert_eq!(declared, found);
        for ((_, ty), (_, value)) in record.fields.iter().zip(&fields) {
            assert_eq!(*ty == "f64", matches!(value, Dyn::Float(_)));
        }
    });
}

#[test]
fn dynamic_calls_do_what_the_typed_functions_do() {
    on(|engine| {
        let x = array_of(call(
            Place::Function,
            "linspace",
            vec![Dyn::Float(0.0), Dyn::Float(5.0), Dyn::Int(6)],
        ));
        let x = array_of(call(ARRAY, "reshape", vec![Dyn::Array(x), list(&[2, -1])]));
        let borrowed = || Dyn::Borrowed(x.alias());
        let row = Dyn::Tuple(vec![
            Dyn::Int(1),
            Dyn::Range { start: Some(1), end: None, inclusive: false },
        ]);
        assert_values(&array_of(call(ARRAY, "slice", vec![borrowed(), row])), &[4.0, 5.0]);
        let sum = call(ARRAY, "sum_axis", vec![borrowed(), Dyn::Int(-1)]);
        assert_values(&array_of(sum), &[3.0, 12.0]);
        let larger = call(Place::Function, "maximum", vec![borrowed(), Dyn::Float(2.0)]);
        assert_values(&array_of(larger), &[2.0, 2.0, 2.0, 3.0, 4.0, 5.0]);
        let halved = operator(Operator::Div, &borrowed(), &Dyn::Int(2)).unwrap();
        assert_values(&array_of(negate(&halved)), &[0.0, -0.5, -1.0, -1.5, -2.0, -2.5]);
        let read = call(ARRAY, "item_as", vec![Dyn::Array(x.slice((1, 2))), Dyn::DType(I32)]);
        assert!(matches!(read, Ok(Dyn::Int(5))));
        let both = Dyn::List(vec![borrowed(), borrowed()]);
        let joined = call(Place::Function, "concatenate", vec![both, Dyn::Int(0)]);
        assert_eq!(array_of(joined).shape(), vec![4, 3]);
        let nested = Dyn::List(vec![list(&[1, 2]), list(&[3, 4])]);
        assert_eq!(array_of(call(Place::Function, "array", vec![nested])).dtype(), I32);
        drop(halved);
        assert_eq!(engine.claims(), 1);
    });
}

#[test]
fn wrong_arguments_are_faults() {
    on(|_| {
        for (place, name, arguments) in [
            (Place::Function, "zeros", vec![Dyn::Text("3".into())]),
            (Place::Function, "zeros", vec![]),
            (Place::Function, "zeros", vec![Dyn::Int(1), Dyn::Int(2)]),
            (Place::Function, "zeros", vec![Dyn::Int(i128::MAX)]),
            (Place::Function, "jit", vec![Dyn::Int(1)]),
            (ARRAY, "tanh", vec![Dyn::Unit]),
        ] {
            assert_eq!(call(place, name, arguments).unwrap_err().kind, FaultKind::Argument);
        }
    });
}

/// `|[x, w]| (x * w, x.sum())`, as the instant tier would hand it over.
#[derive(Debug)]
struct Closure;

impl Callable for Closure {
    fn call(&self, mut arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
        let Some(Dyn::List(pair)) = arguments.pop() else { panic!("one list") };
        let product = operator(Operator::Mul, &pair[0], &pair[1])?;
        let sum = call(ARRAY, "sum", vec![pair[0].clone()])?;
        Ok(Dyn::Tuple(vec![product, sum]))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn a_dynamic_jit_donates_moves_and_restores_by_aliases() {
    on(|engine| {
        let jitted = call(Place::Function, "jit", vec![Dyn::Function(Arc::new(Closure))]).unwrap();
        let Dyn::Function(f) = jitted.clone() else { panic!("a function") };
        let (x, w) = (ones([2]), full([2], 3.0));
        let arguments =
            || vec![Dyn::List(vec![Dyn::Borrowed(x.alias()), Dyn::Borrowed(w.alias())])];
        let Ok(Dyn::Tuple(results)) = f.call(arguments()) else { panic!("a tuple") };
        assert_values(&array_of(Ok(results[0].clone())), &[3.0; 2]);
        let backup = x.alias();
        engine.refuse(true);
        let moved = vec![jitted.clone(), Dyn::Tuple(vec![Dyn::Array(x), Dyn::Borrowed(w.alias())])];
        assert!(call(Place::Method("Jit"), "call", moved).is_err());
        engine.refuse(false);
        let x = backup;
        assert_values(&x, &[1.0; 2]);
        let backup = x.alias();
        let moved = vec![jitted.clone(), Dyn::Tuple(vec![Dyn::Array(x), Dyn::Borrowed(w.alias())])];
        assert!(call(Place::Method("Jit"), "call", moved).is_ok());
        assert!(backup.is_donated());
        let analysis = call(Place::Method("Jit"), "memory_analysis", vec![jitted]).unwrap();
        assert!(matches!(analysis, Dyn::Record { name: "MemoryAnalysis", .. }));
    });
}

#[test]
fn a_structure_rebuilds_the_value() {
    on(|_| {
        let mut arrays = Vec::new();
        let structure = (ones([1]), vec![zeros([1])]).into_leaves(&mut arrays);
        let wanted =
            Structure::Tuple(vec![Structure::Array, Structure::List(vec![Structure::Array])]);
        assert_eq!(structure, wanted);
        let back = <(Array, Vec<Array>)>::from_leaves(&structure, &mut arrays.into_iter()).unwrap();
        assert_eq!(back.1.len(), 1);
        assert!(Array::from_leaves(&structure, &mut std::iter::empty()).is_err());
    });
}
