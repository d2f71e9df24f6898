// expect: E0599
i32::LARGEST
