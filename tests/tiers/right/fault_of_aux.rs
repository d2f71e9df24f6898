// faults
let f = value_and_grad_aux(|[x]| (x * x, x.sum()));
f([&ones([3])]);
