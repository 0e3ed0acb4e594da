  // Words leave in the order in which they came, each once; what is offered stays; at most two are inside.
  (* anyconst *) logic [2:0] p_which;
  logic [2:0] p_came, p_left, p_stock, p_place;
  logic [WIDTH-1:0] p_kept, p_offered;
  logic p_held;
  assign p_stock = p_came - p_left;
  assign p_place = p_which - p_left;
  always_ff @(posedge clk) begin
    if (rst) begin
      p_came <= '0;
      p_left <= '0;
      p_held <= 1'b0;
    end else begin
      if (in_valid && in_ready) p_came <= p_came + 1'b1;
      if (out_valid && out_ready) p_left <= p_left + 1'b1;
      p_held <= out_valid && !out_ready;
    end
    if (in_valid && in_ready && p_came == p_which) p_kept <= in_word;
    p_offered <= out_word;
  end
  always_comb if (p_on) begin
    two: assert (p_stock <= 3'd2);
    shows: assert (out_valid == (p_stock != '0));
    accepts: assert (in_ready || p_stock == 3'd2);
    stays: assert (!p_held || (out_valid && out_word == p_offered));
    ordered: assert (!(out_valid && p_place == '0) || out_word == p_kept);
  end
