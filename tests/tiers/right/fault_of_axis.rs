// faults
ones([2, 3]).sum_axis(2)
