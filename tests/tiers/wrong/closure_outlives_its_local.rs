// expect: E0597
let f;
{
    let k = 5;
    f = || k + 1;
}
f()
