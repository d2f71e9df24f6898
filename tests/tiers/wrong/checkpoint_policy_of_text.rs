// expect: E0308
let f = checkpoint_with("dots_saveable", |[x]| x.tanh());
