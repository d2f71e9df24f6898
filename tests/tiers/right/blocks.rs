let x = {
    let a = 1;
    let b = { a + 1 };
    a + b
};
x
// %%
{
    println!("inside");
}
{ 5 } ;
// %%
let y = { { { 7 } } };
y
// %%
let unit = {
    let _z = 3;
};
unit
// %%
{
    let hidden = 1;
    hidden + 1
}
