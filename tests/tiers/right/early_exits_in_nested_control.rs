fn search(grid: &[[i32; 3]; 2], wanted: i32) -> Option<(usize, usize)> {
    for (i, row) in grid.iter().enumerate() {
        for (j, cell) in row.iter().enumerate() {
            if *cell == wanted {
                return Some((i, j));
            }
        }
    }
    None
}
let grid = [[1, 2, 3], [4, 5, 6]];
(search(&grid, 6), search(&grid, 7))
// %%
fn classify(n: i32) -> &'static str {
    let small = match n {
        0 => return "zero",
        1..=9 => true,
        _ => false,
    };
    let text = if small { "digit" } else { return "large" };
    text
}
(classify(0), classify(5), classify(50))
// %%
let mut out = vec![];
for i in 0.. {
    let value = match i % 4 {
        0 => continue,
        3 if i > 6 => break,
        n => n * i,
    };
    out.push(value);
}
out
