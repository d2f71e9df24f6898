// expect: E0277
struct Layer { w: Array }
tree! { struct Net { layer: Layer } }
