// expect: E0527
let [a, b] = [1, 2, 3];
