let row = array([1.0, 2.0, 3.0]);
let column = array([[10.0], [20.0]]);
&row + &column
// %%
(&row * &column).shape()
// %%
ones([4, 1, 3]).add(&ones([2, 1])).shape()
// %%
row.broadcast_to([2, 3])
// %%
(&column - 1).shape()
// %%
(ones([0, 3]) + &row).shape()
