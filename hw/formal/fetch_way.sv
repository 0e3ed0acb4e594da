  // A way asks for the areas that its descriptors name, each whole and in order, nothing outside of its slot, no burst across a line
  // of 4 KiB, and no beat without a place for it; areas are announced in order, then the end. Bursts have two beats here and the
  // queue four (prove.py). Beats come in any later cycle. Any one area is followed, number `p_nth`.
  (* anyconst *) logic [63:0] p_base;
  (* anyconst *) logic [31:0] p_slot, p_tables, p_first, p_count;
  (* anyconst *) logic p_nth;
  (* anyconst *) logic [3:0] p_word;
  logic p_begun, p_table_owed, p_known, p_held, p_eos;
  logic [3:0] p_owed, p_stock;               // beats asked for; beats in the queue
  logic [1:0] p_rows, p_asked_areas, p_told, p_tables_asked;
  logic [4:0] p_came, p_left;
  logic [255:0] p_row;
  logic [7:0] p_at;                          // beats of the area that were asked for
  logic p_bit, p_data, p_mine, p_takes;
  logic [64+6+3-1:0] p_want;
  logic [7:0] p_need;
  logic [7:0] p_beat;                        // where the burst begins in the slot; far outside if that lies before it
  assign p_beat = {1'b0, want_address[12:6]} - {1'b0, base[12:6]};
  assign p_takes = want_valid && want_ready;
  assign p_data = want_valid && !want_table;
  assign p_mine = p_data && p_asked_areas == 2'(p_nth);
  assign p_need = 8'(p_row[43:38]) + 8'(|p_row[37:32]);
  always_comb begin
    assume (base == p_base && slot_bytes == p_slot && tables_end == p_tables && first == p_first && count == p_count);
    assume (p_base[63:12] == '0 && p_base[5:0] == '0 && p_slot[31:11] == '0 && p_slot[5:0] == '0);
    assume (p_tables >= 32'd512 && p_tables <= p_slot && p_tables[4:0] == '0);
    assume (p_first <= 32'd8 && p_count <= 32'd2 && 32'd512 + 32 * (p_first + p_count) <= p_tables);
    assume (begin_set == (p_on && !p_begun));
    if (p_on) begin
      assume (!got_table || p_table_owed);
      assume (!got_data || p_owed != '0);
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      {p_begun, p_table_owed, p_known, p_held, p_eos} <= '0;
      {p_owed, p_stock, p_rows, p_asked_areas, p_told, p_came, p_left, p_at, p_tables_asked} <= '0;
    end else begin
      p_begun <= 1'b1;
      if (p_takes && want_table) begin
        p_table_owed <= 1'b1;
        p_tables_asked <= p_tables_asked + 1'b1;
      end else if (got_table) begin
        p_table_owed <= 1'b0;
      end
      if (got_table) begin
        p_rows <= p_rows + 1'b1;
        if (p_rows == 2'(p_nth)) {p_known, p_row} <= {1'b1, got_row};
      end
      p_owed <= p_owed + (p_takes && !want_table ? 4'(want_beats) : 4'd0) - 4'(got_data);
      p_stock <= p_stock + 4'(got_data) - 4'(word_valid && word_ready);
      if (p_takes && !want_table) begin
        p_at <= want_last ? '0 : p_at + 8'(want_beats);
        if (want_last) p_asked_areas <= p_asked_areas + 1'b1;
      end
      if (got_data) p_came <= p_came + 1'b1;
      if (got_data && p_came == 5'(p_word)) p_bit <= got_beat[0];
      if (word_valid && word_ready) p_left <= p_left + 1'b1;
      if (area_valid && area_ready) begin
        p_told <= p_told + 1'b1;
        if (area.eos) p_eos <= 1'b1;
      end
      p_held <= want_valid && !want_ready;
    end
    p_want <= {want_address, want_beats, want_table, want_first, want_last};
  end
  always_comb if (p_on) begin
    within: assert (!want_valid || (want_beats != '0 && want_address[63:13] == '0 && want_address[5:0] == '0
        && p_beat >= (want_table ? 8'd8 : 8'(tables_end[11:6]) + 8'(|tables_end[5:0])) && p_beat + 8'(want_beats) <= 8'(slot_bytes[11:6])));
    lines: assert (!want_valid || 7'(want_address[11:6]) + 7'(want_beats) <= 7'd64);
    fits: assert (p_owed + p_stock + (want_valid && !want_table ? 4'(want_beats) : 4'd0) <= 4'd4);
    stays: assert (!p_held || (want_valid && p_want == {want_address, want_beats, want_table, want_first, want_last}));
    place: assert (!p_mine || (p_known && want_address == base + 64'(p_row[31:0]) + {50'd0, p_at, 6'd0}));
    ends_area: assert (!p_mine || (p_at + 8'(want_beats) <= p_need && want_last == (p_at + 8'(want_beats) == p_need)));
    begins_area: assert (!p_data || want_first == (p_at == '0));
    announced: assert (!(area_valid && !area.eos && p_told == 2'(p_nth)) || (p_known
        && {area.markers, area.replay, area.expected, area.take, area.skip, area.bytes}
            == {p_row[125:124], p_row[123:104], p_row[103:84], p_row[83:64], p_row[60:32]}));
    ended: assert (!(area_valid && area.eos) || (32'(p_told) == count && !p_eos));
    ordered: assert (!(word_valid && p_left == 5'(p_word)) || (p_came > 5'(p_word) && word[0] == p_bit));
    one_table: assert (!(want_valid && want_table) || (!p_table_owed && 32'(p_tables_asked) < count));
  end
