// expect: overflowing_literals
300 as u8
