  // What is written lies within the slot, crosses no line of 4 KiB, and no beat of it is written twice: payloads, their records and the
  // status record stay apart. No burst begins before its beats are here, none of a payload after `halt`, and the status record's
  // last beat only when all else has been acknowledged. The sums' values are anything. Slots of 512 to 960 bytes; any one beat
  // of payloads is followed, number `p_nth`, and any one place, beat `p_place` of the slot.
  (* anyconst *) logic [63:0] p_base;
  (* anyconst *) logic [31:0] p_slot;
  (* anyconst *) logic [2:0] p_nth;
  (* anyconst *) logic [3:0] p_place;
  (* anyconst *) logic p_failed;
  logic p_begun, p_was_halt, p_dropped, p_finishing, p_closed, p_aw, p_bit, p_known, p_hit, p_some;
  logic [6:0] p_owed;                        // beats of the burst that were not sent
  logic [4:0] p_asked, p_acked;              // bursts
  logic [4:0] p_came, p_sent, p_put;         // beats of payloads: that came, were written, and that bursts were begun for
  logic [31:0] p_blocks;
  logic [71:0] p_at;
  logic p_new;                               // a burst begins
  logic [8:0] p_from;                        // where it begins in the slot, in beats; far outside if that lies before it
  assign p_from = {2'b0, aw_address[12:6]} - {2'b0, base[12:6]};
  assign p_new = aw_valid && !p_aw;
  logic p_covers;
  assign p_covers = 9'(p_place) >= p_from && 9'(p_place) <= p_from + 9'(aw_len);
  always_comb begin
    assume (base == p_base && slot_bytes == p_slot && failed == p_failed);
    assume (p_base[63:12] == '0 && p_base[5:0] == '0 && p_slot >= 32'd512 && p_slot < 32'd1024 && p_slot[5:0] == '0);
    assume (begin_set == (p_on && !p_begun));
    if (p_on) begin
      // Blocks are numbered, the open one comes last, and none is empty but a first one that is open.
      assume (!in_valid || (!p_closed && in_block.number == p_blocks));
      assume (!in_valid || in_some || in_end);
      assume (!(in_valid && in_end) || in_some || p_some || (in_block.open && p_blocks == '0));
      assume (!p_was_halt || halt || p_dropped);
      assume (!drop || (halt && quiet));
      assume (!(halt && p_dropped));
      assume (!finish || (!halt && !drop && (complete || p_dropped)));
      assume (!p_finishing || finish);
      assume (!p_dropped || !in_valid);
      assume (!b_valid || p_acked != p_asked - 5'(p_owed != '0 || p_new || aw_valid));
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_begun, p_was_halt, p_dropped, p_finishing, p_closed, p_aw, p_known, p_hit, p_some} <= '0;
      {p_owed, p_asked, p_acked, p_came, p_sent, p_put, p_blocks} <= '0;
    end else begin
      p_begun <= 1'b1;
      p_was_halt <= halt;
      if (drop) p_dropped <= 1'b1;
      p_finishing <= finish;
      if (in_valid && in_ready) begin
        p_some <= !in_end && (p_some || in_some);
        if (in_some) p_came <= p_came + 1'b1;
        if (in_some && p_came == 5'(p_nth)) {p_known, p_bit} <= {1'b1, in_word[0]};
        if (in_end) begin
          p_blocks <= p_blocks + 1'b1;
          p_closed <= in_block.open;
        end
      end
      p_aw <= aw_valid && !aw_ready;
      p_asked <= p_asked + 5'(p_new);
      p_acked <= p_acked + 5'(b_valid);
      p_owed <= (p_new ? 7'(aw_len) + 7'd1 : p_owed) - 7'(w_valid && w_ready);
      if (p_new && p_covers) p_hit <= 1'b1;
      if (p_new && !w_rec) p_put <= p_put + 5'(aw_len) + 5'd1;
      if (w_valid && w_ready && !w_rec) p_sent <= p_sent + 1'b1;
    end
    p_at <= {aw_address, aw_len};
  end
  logic [6:0] p_due;                         // beats of the burst from this cycle on
  logic p_ends;                              // the burst is the status record's end
  assign p_due = p_new ? 7'(aw_len) + 7'd1 : p_owed;
  assign p_ends = p_new && w_rec && aw_address == base + 64'(slot_bytes) - 64'd64;
  always_comb if (p_on) begin
    within: assert (!p_new || (aw_address[63:13] == '0 && aw_address[5:0] == '0
        && p_from < 9'd16 && p_from + 9'(aw_len) < 9'(slot_bytes[9:6])));
    lines: assert (!p_new || 8'(aw_address[11:6]) + aw_len <= 8'd63);
    placed: assert (!(p_new && !w_rec) || p_from == 9'(p_put));
    once: assert (!(p_new && p_covers && p_hit));
    gapless: assert (w_valid == (p_due != '0));
    counted: assert (!w_valid || w_last == (p_due == 7'd1));
    halted: assert (!(p_new && !w_rec && p_was_halt));
    behind: assert (!p_ends || p_asked == p_acked);
    written: assert (!finished || (p_asked == p_acked && p_owed == '0 && !p_new));
    quiet_owes: assert (!quiet || (p_asked == p_acked && p_owed == '0 && !aw_valid));
    in_place: assert (!(w_valid && !w_rec && p_sent == 5'(p_nth)) || (p_known && w_beat[0] == p_bit));
    stays: assert (!p_aw || (aw_valid && p_at == {aw_address, aw_len}));
  end
