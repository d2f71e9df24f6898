// expect: E0502
struct State { x: i32 }
fn read(s: &State) -> i32 { s.x }
fn write(s: &mut State, x: i32) { s.x = x; }
let mut s = State { x: 1 };
write(&mut s, read(&s) + 4);
