  // No command is lost or run twice: commands run in the order of the ring, each with what the host wrote, as many as the
  // doorbell announced; registers tell what was finished. The host does not write commands that are announced and not
  // finished, and announces no more than the ring holds: two here, as a smaller ring is proven (prove.py).
  logic p_write, p_read, p_reset;
  logic [11:0] p_to;
  logic [31:0] p_word;
  assign p_write = s_aw_valid && s_aw_ready && s_w_valid && s_w_ready;
  assign p_read = s_ar_valid && s_ar_ready;
  assign p_to = s_aw_address;
  assign p_word = s_w_word;
  assign p_reset = p_resetting && reset_done;
  logic [31:0] p_told, p_ran, p_wants;       // what the doorbell says, and what is finished
  logic p_later;                             // irq has no reset: it follows a cycle later
  logic p_enabled, p_resetting, p_was_valid, p_was_done, p_known, p_asks, p_acts;
  logic [1:0] p_mask, p_pending, p_set, p_wiped;
  logic [7:0] p_code;
  logic [255:0] p_command;
  logic [3:0] p_wait;
  (* anyconst *) logic p_slot;
  (* anyconst *) logic [2:0] p_nth;
  logic [31:0] p_shadow;
  logic [3:0] p_place;
  assign p_place = p_to[9:6] - p_ran[3:0];
  always_comb if (p_on) begin
    assume (!(p_write && p_to == 12'h050) || (p_word - p_told <= 32'd2 && p_word - p_ran <= 32'd2));
    assume (!(p_write && p_to[11:10] == 2'b01) || 32'(p_place[0]) >= p_told - p_ran);
    assume (!command_done || command_valid);
    assume (!reset_done || p_resetting);
    assume (s_aw_address[1:0] == '0);
  end
  assign p_set = command_valid && command_done ? {command_silent, !command_silent} : 2'd0;
  assign p_wiped = p_write && p_to == 12'h04c ? p_word[1:0] : 2'd0;
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_told, p_ran} <= '0;
      {p_enabled, p_resetting, p_was_valid, p_was_done, p_known, p_asks} <= '0;
      {p_mask, p_pending, p_code} <= '0;
      p_acts <= 1'b0;
      p_wait <= '0;
    end else begin
      if (command_valid && command_done) begin
        p_ran <= p_ran + 1'b1;
        if (command_code != pkg::OK) p_code <= command_code;
      end
      // A bit that is set in the cycle in which it is wiped stays set.
      p_pending <= (p_pending & ~p_wiped) | p_set;
      if (p_write && p_to == 12'h040) begin
        p_enabled <= p_word[0];
        if (p_word[2]) p_resetting <= 1'b1;
      end
      if (p_write && p_to == 12'h048) p_mask <= p_word[1:0];
      if (p_write && p_to == 12'h050) p_told <= p_word;
      if (p_write && p_to[11:10] == 2'b01 && p_to[6:2] == {p_slot, 1'b0, p_nth}) {p_known, p_shadow} <= {1'b1, p_word};
      if (p_reset) begin
        {p_told, p_ran} <= '0;
        {p_enabled, p_resetting} <= '0;
        {p_mask, p_pending, p_code} <= '0;
      end
      p_was_valid <= command_valid && !command_done && !p_reset;
      p_was_done <= command_valid && command_done;
      p_wait <= p_enabled && !p_resetting && p_told != p_ran && !command_valid ? p_wait + 1'b1 : '0;
      if (p_read) begin
        p_asks <= s_ar_address == 12'h04c || s_ar_address == 12'h050 || s_ar_address == 12'h054
            || s_ar_address == 12'h058;
        p_wants <= s_ar_address == 12'h04c ? 32'(p_pending) : s_ar_address == 12'h050 ? p_told
            : s_ar_address == 12'h054 ? p_ran : 32'(p_code);
      end
      p_acts <= |(p_mask & p_pending);
    end
    p_command <= command;
    p_later <= p_on;
  end
  always_comb if (p_on) begin
    announced: assert (!command_valid || p_told != p_ran);
    content: assert (!(command_valid && p_ran[0] == p_slot && p_known)
        || command[32*32'(p_nth) +: 32] == p_shadow);
    stays: assert (!p_was_valid || (command_valid && command == p_command));
    once: assert (!(p_was_done && command_valid));
    starts: assert (p_wait <= 4'd12);
    resets: assert (reset_wanted == p_resetting);
    tells: assert (!(s_r_valid && p_asks) || s_r_word == p_wants);
    interrupts: assert (!p_later || irq == p_acts);
  end
