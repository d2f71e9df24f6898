// expect: E0382
struct Layer { w: Array }
let l = Layer { w: ones([2]) };
let w = l.w * 2.0;
l.w
