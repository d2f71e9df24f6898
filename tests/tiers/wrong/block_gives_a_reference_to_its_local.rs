// expect: E0597
let r = {
    let x = ones([1]);
    &x
};
r.len()
