// expect: E0277
tree! { struct Layer { w: Array, rate: f64 } }
