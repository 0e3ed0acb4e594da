  // No more bursts are under way than its log holds, which is eight or sixteen, and two here (prove.py); each is what one way wanted, and what
  // comes back goes to that way; after `halt` none is begun, and `idle` means that memory owes nothing. Ways and sums do anything in
  // any cycle; memory answers whole bursts of one to three beats in order, in any cycle.
  logic [3:0] p_head, p_tail;                // bursts that were asked for, and that came back whole
  logic [7:0] p_log [4];                     // of each: the way, whether it is a descriptor, its beats
  logic [1:0] p_taken;
  logic p_held, p_was_halt, p_was_beat;
  logic [71:0] p_ar;
  logic [5:0] p_was;
  logic [7:0] p_now, p_next;
  logic p_new, p_final;
  logic [N:0] p_wants;
  logic [3:0] p_waits;
  integer p_i;
  assign p_now = p_log[p_tail[1:0]];
  assign p_final = p_taken + 2'd1 == p_now[1:0];
  // A burst is new in the cycle behind its grant.
  assign p_new = |want_ready;
  always_comb begin
    p_next = '0;
    for (p_i = 0; p_i <= N; p_i = p_i + 1)
      if (want_ready[p_i]) p_next = {5'(p_i), want_table[p_i], want_beats[6*p_i +: 2]};
    if (p_on) begin
      // A beat comes only of a burst that memory took.
      assume (!r_valid || (p_head != p_tail && !(ar_valid && p_tail + 4'd1 == p_head)));
      assume (!p_was_halt || halt);
      assume (!head_in);
      for (p_i = 0; p_i <= N; p_i = p_i + 1) begin
        assume (!want_valid[p_i] || (want_beats[6*p_i +: 6] != '0 && want_beats[6*p_i +: 6] <= 6'd3));
        // What is offered stays.
        assume (!p_wants[p_i] || want_valid[p_i]);
      end
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_head, p_tail, p_taken, p_held, p_was_halt, p_was_beat, p_wants, p_waits} <= '0;
    end else begin
      if (p_new) begin
        p_log[p_head[1:0]] <= p_next;
        p_head <= p_head + 1'b1;
      end
      if (r_valid) p_taken <= p_final ? '0 : p_taken + 1'b1;
      if (r_valid && p_final) p_tail <= p_tail + 1'b1;
      p_held <= ar_valid && !ar_ready;
      p_was_halt <= halt;
      p_was_beat <= r_valid && !halt;
      p_wants <= want_valid & ~want_ready;
      // Bursts that others got while way 0 wanted one.
      p_waits <= !want_valid[0] || want_ready[0] ? '0 : p_waits + 4'(p_new);
    end
    p_ar <= {ar_address, ar_len};
    p_was <= p_now[7:2];
  end
  logic p_fresh;                             // the burst at the port was granted in the cycle before
  logic [71:0] p_wanted;
  always_ff @(posedge clk) begin
    p_fresh <= p_new && !rst;
    for (p_i = 0; p_i <= N; p_i = p_i + 1)
      if (want_ready[p_i]) p_wanted <= {want_address[64*p_i +: 64], 8'(want_beats[6*p_i +: 6]) - 8'd1};
  end
  always_comb if (p_on) begin
    bounded: assert (p_head - p_tail <= 4'd2);
    stays: assert (!p_held || (ar_valid && p_ar == {ar_address, ar_len}));
    asked: assert (!p_fresh || (ar_valid && p_wanted == {ar_address, ar_len}));
    halted: assert (!(halt && p_new));
    idle_owes: assert (!idle || (p_head == p_tail && !ar_valid));
    dealt: assert ({got_table, got_data} == (p_was_beat
        ? (p_was[0] ? {(N+1)'(1) << p_was[5:1], (N+1)'(0)} : {(N+1)'(0), (N+1)'(1) << p_was[5:1]}) : '0));
    turns: assert (p_waits <= 4'(N));
  end
