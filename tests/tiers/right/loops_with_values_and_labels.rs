let mut i = 0;
let found = loop {
    i += 1;
    if i * i > 50 {
        break i;
    }
};
found
// %%
let pair = 'outer: loop {
    for a in 1.. {
        for b in 1..a {
            if a * a - b * b == 45 {
                break 'outer (a, b);
            }
        }
    }
};
pair
// %%
'rows: for row in 0..4 {
    for column in 0..4 {
        if column == row {
            continue 'rows;
        }
        if row == 3 {
            break 'rows;
        }
        print!("{row}{column} ");
    }
}
println!("done");
// %%
let value = 'block: {
    if found > 100 {
        break 'block "large";
    }
    if found > 5 {
        break 'block "medium";
    }
    "small"
};
value
// %%
let mut n = 0;
let text = loop {
    n += 1;
    if n == 3 {
        break "three";
    } else if n > 10 {
        break "never";
    }
};
text
