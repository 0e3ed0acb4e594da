  // The first cycle resets, and no other does.
  logic p_on = 1'b0;
  always_ff @(posedge clk) p_on <= 1'b1;
  always_comb assume (rst == !p_on);
