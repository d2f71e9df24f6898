// expect: E0425
{
    fn inner() -> i32 {
        1
    }
}
inner()
