// expect: E0571
let x = while true {
    break 5;
};
