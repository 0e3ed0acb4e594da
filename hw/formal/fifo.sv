  // Words leave in the order in which they came, each once; `count` is what is inside. Any one word, `p_which`, is
  // followed; words are counted modulo 2^(LG + 2), which is more than there is room for.
  (* anyconst *) logic [LG+1:0] p_which;
  logic [LG+1:0] p_came, p_left, p_stock, p_place;
  logic [WIDTH-1:0] p_kept;
  logic p_still;
  assign p_stock = p_came - p_left;
  assign p_place = p_which - p_left;
  always_ff @(posedge clk) begin
    if (rst) begin
      p_came <= '0;
      p_left <= '0;
      p_still <= 1'b0;
    end else begin
      if (in_valid && in_ready) p_came <= p_came + 1'b1;
      if (out_valid && out_ready) p_left <= p_left + 1'b1;
      p_still <= p_stock != '0 && !out_valid;
    end
    if (in_valid && in_ready && p_came == p_which) p_kept <= in_word;
  end
  always_comb if (p_on) begin
    counted: assert (p_stock == (LG+2)'(count));
    filled: assert (!out_valid || p_stock != '0);
    ordered: assert (!(out_valid && p_place == '0) || out_word == p_kept);
    accepts: assert (in_ready || p_stock >= (LG+2)'(DEPTH));
    shows: assert (!p_still || out_valid);
  end
