  // The words of a payload are its pieces in order, without gaps, and zeros behind the last byte. Any one byte, number `p_nth` of
  // payload `p_pay`, is followed; payloads are counted modulo 4, as at most two are inside.
  (* anyconst *) logic [1:0] p_pay;
  (* anyconst *) logic [4:0] p_nth;
  logic [1:0] p_in, p_out;                   // payloads that came, and left
  logic [5:0] p_at, p_words, p_total;        // bytes that came of the payload, words that left
  logic p_known, p_over, p_held, p_still;
  logic [7:0] p_byte;
  pkg::block_t p_told;
  logic [8*W-1:0] p_word;
  logic [1:0] p_kind;
  logic p_take, p_give, p_here;
  logic [LW-1:0] p_of;                       // which byte of the piece it is
  assign p_take = piece_valid && piece_ready;
  assign p_give = out_valid && out_ready;
  assign p_of = piece_from + LW'(6'(p_nth) - p_at);
  always_comb if (p_on) assume (piece_len <= (LW+1)'(W));
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_in, p_out} <= '0;
      {p_at, p_words} <= '0;
      {p_known, p_over, p_held, p_still} <= '0;
    end else begin
      if (p_take) begin
        if (p_in == p_pay && 6'(p_nth) >= p_at && 6'(p_nth) < p_at + 6'(piece_len))
          {p_known, p_byte} <= {1'b1, piece[8*32'(p_of) +: 8]};
        p_at <= piece_end ? '0 : p_at + 6'(piece_len);
        if (piece_end) begin
          p_in <= p_in + 1'b1;
          if (p_in == p_pay) begin
            p_over <= 1'b1;
            p_total <= p_at + 6'(piece_len);
            p_told <= piece_block;
          end
          if (p_in + 2'd1 == p_pay) {p_known, p_over} <= '0;
        end
      end
      if (p_give) begin
        p_words <= out_end ? '0 : p_words + 1'b1;
        if (out_end) p_out <= p_out + 1'b1;
      end
      p_held <= out_valid && !out_ready;
      p_still <= p_in != p_out && !out_valid;
    end
    p_word <= out_word;
    p_kind <= {out_some, out_end};
  end
  assign p_here = out_valid && p_out == p_pay;
  logic p_shows;                             // the word with the byte
  assign p_shows = p_here && out_some && p_words == 6'(p_nth) >> LW;
  always_comb if (p_on) begin
    in_place: assert (!(p_shows && p_known) || out_word[8*32'(p_nth[LW-1:0]) +: 8] == p_byte);
    zeros: assert (!(p_shows && !p_known) || (p_over && out_word[8*32'(p_nth[LW-1:0]) +: 8] == '0));
    to_the_end: assert (!(p_here && out_end)
        || (p_over && p_words + 6'(out_some) == (p_total + 6'(W - 1)) >> LW));
    told: assert (!(p_here && out_end) || out_block == p_told);
    not_empty: assert (!out_valid || out_end || out_some);
    stays: assert (!p_held || (out_valid && out_word == p_word && {out_some, out_end} == p_kind));
    shows: assert (!p_still || out_valid);
    accepts: assert (piece_ready || out_valid || p_in != p_out);
  end
