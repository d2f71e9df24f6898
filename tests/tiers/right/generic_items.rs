const WIDTH: usize = 3;
const SCALE: f64 = 0.5;
fn row() -> [f64; WIDTH] {
    [SCALE; WIDTH]
}
row()
// %%
fn largest(values: &[f64; WIDTH]) -> f64 {
    let mut top = values[0];
    for v in values {
        if *v > top {
            top = *v;
        }
    }
    top
}
largest(&[1.0, 7.0, SCALE])
// %%
fn count(v: &Vec<Vec<i32>>) -> usize {
    v.iter().map(|row| row.len()).sum()
}
count(&vec![vec![1, 2], vec![]])
// %%
fn ackermann(m: u64, n: u64) -> u64 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}
ackermann(2, 3)
// %%
fn is_prime(n: u32) -> bool {
    if n < 2 {
        return false;
    }
    let mut d = 2;
    while d * d <= n {
        if n % d == 0 {
            return false;
        }
        d += 1;
    }
    true
}
(0..30).filter(|n| is_prime(*n)).collect::<Vec<u32>>()
// %%
fn sort(mut v: Vec<i32>) -> Vec<i32> {
    let n = v.len();
    for i in 0..n {
        for j in 0..n - 1 - i {
            if v[j] > v[j + 1] {
                v.swap(j, j + 1);
            }
        }
    }
    v
}
sort(vec![3, 1, 2])
// %%
fn unit() {
    println!("unit");
}
let u = unit();
u
// %%
fn matmul(a: [[i32; 2]; 2], b: [[i32; 2]; 2]) -> [[i32; 2]; 2] {
    let mut c = [[0; 2]; 2];
    for i in 0..2 {
        for j in 0..2 {
            for k in 0..2 {
                c[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    c
}
matmul([[1, 1], [1, 0]], [[1, 1], [1, 0]])
