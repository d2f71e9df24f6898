// expect: E0597
let r;
{
    let x = 5;
    r = &x;
}
println!("{r}");
