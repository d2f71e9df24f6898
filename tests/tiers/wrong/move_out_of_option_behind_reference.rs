// expect: E0507
fn get(o: &Option<Array>) -> Array {
    o.unwrap()
}
