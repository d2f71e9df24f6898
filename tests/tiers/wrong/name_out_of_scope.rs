// expect: E0425
{
    let inner = 1;
}
inner + 1
