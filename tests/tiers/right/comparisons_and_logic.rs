(1 < 2, 2 <= 2, 3 > 4, 4 >= 5, 1 == 1, 1 != 1)
// %%
1.0 < f64::NAN || f64::NAN == f64::NAN
// %%
"abc" < "abd" && 'a' < 'b'
// %%
(1, "b") < (1, "c")
// %%
[1, 2, 3] < [1, 3, 0]
// %%
let mut calls = 0;
let mut seen = |value: bool| {
    calls += 1;
    value
};
let first = seen(false) && seen(true);
let second = seen(true) || seen(false);
(first, second, calls)
// %%
!true ^ true
// %%
false < true
