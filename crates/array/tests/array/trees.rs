//! Structs that hold arrays: their leaves, paths and structures, and what `jit` gives back.

use crate::on;
use vramlab_array::Structure;
use vramlab_array::prelude::*;

tree! {
    /// A layer of a network.
    #[derive(Clone, Debug)]
    pub struct Layer {
        pub w: Array,
        b: Array,
    }

    struct Net {
        layers: Vec<Layer>,
        head: (Array, [Array; 2]),
        scale: Scale,
        nothing: Nothing,
    }

    #[derive(Clone)]
    struct Scale(Array, pub Layer);

    struct Nothing;
}

fn layer(w: f64) -> Layer {
    Layer { w: full([2], w), b: zeros([2]) }
}

fn net() -> Net {
    Net {
        layers: vec![layer(1.0), layer(2.0)],
        head: (ones([1]), [ones([1]), ones([1])]),
        scale: Scale(ones([3]), layer(3.0)),
        nothing: Nothing,
    }
}

#[test]
fn leaves_have_paths() {
    on(|_| {
        let net = net();
        let paths = net.paths("net");
        let wanted = [
            "net.layers[0].w",
            "net.layers[0].b",
            "net.layers[1].w",
            "net.layers[1].b",
            "net.head.0",
            "net.head.1[0]",
            "net.head.1[1]",
            "net.scale.0",
            "net.scale.1.w",
            "net.scale.1.b",
        ];
        assert_eq!(paths, wanted);
        let mut leaves = Vec::new();
        net.leaves(&mut leaves);
        assert_eq!(leaves.len(), net.structure().leaf_count());
        assert_eq!(leaves[2].to_vec::<f64>(), [2.0, 2.0]);
    });
}

#[test]
fn a_tree_is_made_again_from_its_leaves() {
    on(|_| {
        let mut arrays = Vec::new();
        let structure = net().into_leaves(&mut arrays);
        assert_eq!(structure, net().structure());
        let back = Net::from_leaves(&structure, &mut arrays.into_iter()).unwrap();
        assert_eq!(back.scale.1.w.to_vec::<f64>(), [3.0, 3.0]);
        let doubled = back.map(|array| array * 2.0);
        assert_eq!(doubled.layers[1].w.to_vec::<f64>(), [4.0, 4.0]);
        assert!(Layer::from_leaves(&structure, &mut std::iter::empty()).is_err());
        assert!(Net::from_leaves(&structure, &mut std::iter::empty()).is_err());
    });
}

#[test]
fn a_difference_names_its_path() {
    on(|_| {
        let (one, mut other) = (net(), net());
        assert_eq!(one.structure().difference(&other.structure(), "net"), None);
        other.layers.pop();
        let told = one.structure().difference(&other.structure(), "net");
        assert_eq!(told.as_deref(), Some("net.layers has 2 elements here and 1 there"));
        let a = (layer(1.0), ones([1])).structure();
        let b = (layer(1.0), layer(2.0)).structure();
        let told = a.difference(&b, "grads");
        assert_eq!(told.as_deref(), Some("grads.1 is Array here and Layer there"));
        let a = Structure::Tuple(vec![Structure::Array; 2]);
        assert_eq!(
            a.difference(&Structure::Array, "").as_deref(),
            Some("the value is (Array, Array) here and Array there")
        );
    });
}

#[test]
fn jit_returns_a_struct() {
    on(|_| {
        let step = jit(|[w, b]| Layer { w: w * 2.0, b: b + 1.0 });
        let layer = step([&ones([2]), &zeros([2])]);
        assert_eq!(layer.w.to_vec::<f64>(), [2.0, 2.0]);
        assert_eq!(layer.b.to_vec::<f64>(), [1.0, 1.0]);
    });
}
