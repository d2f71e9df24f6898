// expect: E0599
i32::maximum(1, 2)
