  // What leaves is what came, in order: every entry of both inputs once, with all of its beats, input A's first among equals, and
  // the end when both have ended. Inputs are in order, entries have two beats at most. Any one entry is followed, number `p_nth` of
  // input `p_side`. Proven with bytes and tags of one bit (prove.py); bit 0 of a beat says which input it is of.
  localparam int P_CNT = LOW + 1;
  (* anyconst *) logic p_side;
  (* anyconst *) logic [1:0] p_nth;
  logic [1:0] p_over, p_eq, p_any, p_take;   // of both inputs: has ended, is like its last entry so far, has a last one
  logic p_pos [2];                           // beats of the entry that came
  logic [CMP-1:0] p_last [4];                // the entry before, its beats
  logic [2:0] p_came [2];                    // whole entries that came, and that left
  logic [2:0] p_left [2];
  logic [BW-1:0] p_beat [2];
  logic [1:0] p_valid;
  logic p_known;
  logic p_size;
  logic [BW-1:0] p_kept [2];
  assign p_beat[0] = a_beat;
  assign p_beat[1] = b_beat;
  assign p_valid = {b_valid, a_valid};
  assign p_take = p_valid & {b_ready, a_ready};
  function automatic logic p_more(input logic [BW-1:0] beat);
    p_more = beat[P_CNT +: CW] == CW'(W + 1);
  endfunction
  integer p_i;
  always_comb
    for (p_i = 0; p_i < 2; p_i = p_i + 1)
      if (p_on && p_valid[p_i]) begin
        assume (!p_over[p_i]);
        assume (p_beat[p_i][0] == 1'(p_i));
        assume (p_beat[p_i][P_CNT +: CW] <= CW'(W + 1));
        if (p_beat[p_i][BW-1]) begin
          assume (p_pos[p_i] == '0 && p_beat[p_i][BW-2:LOW] == '0);
        end else begin
          assume (!p_more(p_beat[p_i]) || (!p_pos[p_i] && !p_beat[p_i][LOW]));
          assume (p_beat[p_i][P_CNT +: CW] != '0 || (!p_pos[p_i] && !p_beat[p_i][BW-2]));
        end
        assume (!(p_any[p_i] && p_eq[p_i]) || p_beat[p_i][BW-1:LOW] >= p_last[2*p_i + 32'(p_pos[p_i])]);
        assume (p_came[p_i] != 3'd7);
      end
  logic o_pos;
  logic o_any, o_eq, o_over, o_side, o_held, o_more, o_same;
  logic [CMP-1:0] o_now;
  logic [CMP-1:0] o_last [2];
  logic [BW-1:0] o_word;
  logic [3:0] p_wait;
  logic p_due;
  assign o_more = p_more(out_beat);
  assign o_same = o_any && o_eq && out_beat[BW-1:LOW] == o_last[o_pos];
  assign p_due = (p_over[0] || p_came[0] != p_left[0]) && (p_over[1] || p_came[1] != p_left[1]) && !o_over;
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_over, p_any, p_known, o_pos, o_any, o_over, o_held, p_wait} <= '0;
      {p_eq, o_eq} <= '1;
      for (p_i = 0; p_i < 2; p_i = p_i + 1) begin
        p_pos[p_i] <= '0;
        p_came[p_i] <= '0;
        p_left[p_i] <= '0;
      end
    end else begin
      for (p_i = 0; p_i < 2; p_i = p_i + 1)
        if (p_take[p_i]) begin
          p_last[2*p_i + 32'(p_pos[p_i])] <= p_beat[p_i][BW-1:LOW];
          p_eq[p_i] <= p_eq[p_i] && p_any[p_i] && p_last[2*p_i + 32'(p_pos[p_i])] == p_beat[p_i][BW-1:LOW];
          p_pos[p_i] <= p_pos[p_i] + 1'b1;
          if (p_side == 1'(p_i) && p_came[p_i] == 3'(p_nth)) p_kept[p_pos[p_i]] <= p_beat[p_i];
          if (!p_more(p_beat[p_i])) begin
            p_pos[p_i] <= '0;
            {p_eq[p_i], p_any[p_i]} <= '1;
            if (p_beat[p_i][BW-1]) p_over[p_i] <= 1'b1;
            else p_came[p_i] <= p_came[p_i] + 1'b1;
            if (p_side == 1'(p_i) && p_came[p_i] == 3'(p_nth) && !p_beat[p_i][BW-1]) begin
              p_known <= 1'b1;
              p_size <= p_pos[p_i];
            end
          end
        end
      if (out_valid && out_ready) begin
        o_now <= out_beat[BW-1:LOW];
        o_eq <= o_same;
        o_pos <= o_pos + 1'b1;
        if (!o_more) begin
          o_pos <= '0;
          {o_eq, o_any} <= '1;
          o_side <= out_beat[0];
          if (out_beat[BW-1]) o_over <= 1'b1;
          else p_left[out_beat[0]] <= p_left[out_beat[0]] + 1'b1;
          o_last[1] <= out_beat[BW-1:LOW];
          o_last[0] <= o_pos ? o_now : out_beat[BW-1:LOW];
        end
      end
      o_held <= out_valid && !out_ready;
      p_wait <= p_due && !out_valid ? p_wait + 1'b1 : '0;
    end
    o_word <= out_beat;
  end
  logic o_mine;                              // the entry that is followed ends with this beat
  assign o_mine = out_valid && !o_more && !out_beat[BW-1] && out_beat[0] == p_side && p_left[p_side] == 3'(p_nth);
  always_comb if (p_on) begin
    ordered: assert (!(out_valid && o_any && o_eq) || out_beat[BW-1:LOW] >= o_last[o_pos]);
    ties: assert (!(out_valid && !o_more && o_same && !out_beat[BW-1]) || !o_side || out_beat[0]);
    came: assert (!o_mine || p_known);
    whole: assert (!o_mine || (o_pos == p_size && out_beat == p_kept[o_pos]
        && (!o_pos || o_now == p_kept[0][BW-1:LOW])));
    over: assert (!(out_valid && out_beat[BW-1])
        || (&p_over && o_pos == '0 && !o_over && p_came[0] == p_left[0] && p_came[1] == p_left[1]));
    stays: assert (!o_held || (out_valid && out_beat == o_word));
    moves: assert (p_wait <= 4'd8);
  end
