// expect: E0382
let o = Some(ones([2]));
match o {
    Some(x) => drop(x),
    None => {}
}
o.is_some()
