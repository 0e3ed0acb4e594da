// Makes internal keys (the tag behind the user key) and finds what each has in common with the survivor before.
//
// The tag moves to its place by one rotator of eight bytes; if it does not fit the last row, one more row
// follows. Rows are compared byte by byte with those of the slot before: equality is registered, then the
// first difference is found.
//
// Keeps: `shared` is the number of leading bytes that two neighbouring internal keys have in common, as written, and 0
// at restart points. A slot of the ring is not written while the encoder may read it.
module prefix #(
  parameter int W = 16
) (
  input  logic           clk,
  input  logic           rst,
  input  logic           in_valid,
  output logic           in_ready,
  input  pkg::op_t       in_op,
  input  pkg::cut_t      in_cut,
  input  logic [8*W-1:0] in_row,
  input  logic           in_last,
  // Entries for the encoder.
  output logic           item_valid,
  input  logic           item_ready,
  output pkg::item_t     item,
  // The ring's port for the encoder, and what it is still reading.
  input  logic [1:0]     read_slot,
  input  logic [7:0]     read_at,          // a byte; its row is read
  output logic [8*W-1:0] read_row,
  input  logic [1:0]     ahead_slot,       // a second port
  input  logic [7:0]     ahead_at,
  output logic [8*W-1:0] ahead_row,
  input  logic           reading,
  input  logic [1:0]     reading_slot
);
  localparam int ROWS = 256 / W;
  localparam int RW = $clog2(ROWS);
  localparam int LW = $clog2(W);
  integer i;

  (* ram_style = "distributed" *) logic [8*W-1:0] ring [4*ROWS];
  logic [1:0] slot;
  logic [RW-1:0] row;
  logic spilling;                          // the rest of the tag is due
  logic oldest_valid;
  logic [1:0] oldest;

  // ---- the internal key's rows ----
  logic [7:0] rest;                        // bytes of the user key from this row on
  logic [8:0] rest_tag, rest_spill;
  logic row_last, spills, go, slot_free, stall, queue_ready;
  logic [8*W-1:0] laid, made;
  logic [LW-1:0] from;
  assign rest = in_op.ulen - {row, LW'(0)};
  assign rest_tag = 9'(rest) + 9'd8;
  // Of the last row; the length's low bits say it by themselves, which keeps `in_ready` short.
  assign spills = in_op.ulen[LW-1:0] > LW'(W - 8) || (in_op.ulen[LW-1:0] == '0 && in_op.ulen[7:LW] != '0);
  assign from = LW'(rest);
  // The tag as a circle that begins at `from`.
  logic [8*W-1:0] wide;
  logic [16*W-1:0] twice;
  assign wide = (8*W)'(in_op.tag);
  assign twice = {wide, wide} << {from, 3'b0};
  assign laid = twice[16*W-1:8*W];
  always_comb
    for (i = 0; i < W; i = i + 1) begin
      if (spilling) made[8*i +: 8] = 9'(i) + 9'(W) < rest_spill + 9'd8 ? laid[8*i +: 8] : 8'd0;
      else if (8'(i) < rest) made[8*i +: 8] = in_row[8*i +: 8];
      else made[8*i +: 8] = 9'(i) < rest_tag ? laid[8*i +: 8] : 8'd0;
    end
  // In the spilt row, `row` has moved on by one.
  assign rest_spill = {1'b0, rest + 8'(W)};

  assign slot_free = !oldest_valid || slot != oldest || !in_op.keep;
  assign go = in_valid && slot_free && !stall;
  assign row_last = !in_op.keep || (spilling ? 1'b1 : in_last && !spills);
  assign in_ready = slot_free && !stall && (spilling || !in_last || row_last);

  logic s1_valid, s1_first, s1_last;
  logic [8*W-1:0] s1_new, s1_old;
  pkg::item_t s1_item;
  logic [7:0] before_len;                  // internal length of the survivor before
  always_ff @(posedge clk) begin
    if (rst) begin
      slot <= '0;
      row <= '0;
      spilling <= 1'b0;
      s1_valid <= 1'b0;
    end else begin
      if (go) begin
        row <= row_last ? '0 : row + 1'b1;
        spilling <= in_last && !row_last;
        if (row_last && in_op.keep) slot <= slot + 1'b1;
      end
      if (!stall) s1_valid <= go;
    end
    if (go && in_op.keep) ring[{slot, row}] <= made;
    if (!stall) begin
      s1_new <= made;
      s1_old <= ring[{slot - 2'd1, row}];
      s1_first <= row == '0;
      s1_last <= row_last;
      s1_item.stop <= in_op.stop;
      s1_item.keep <= in_op.keep;
      s1_item.slot <= in_op.keep ? slot : slot - 2'd1;
      s1_item.ulen <= in_op.ulen;
      s1_item.shared <= '0;
      s1_item.vlen <= in_op.vlen;
      s1_item.way <= in_op.way;
      s1_item.cut <= in_cut;
    end
  end

  // ---- byte equality, then the first difference ----
  logic s2_valid, s2_first, s2_last;
  logic [W-1:0] s2_same;
  pkg::item_t s2_item;
  always_ff @(posedge clk) begin
    if (rst) s2_valid <= 1'b0;
    else if (!stall) s2_valid <= s1_valid;
    if (!stall) begin
      for (i = 0; i < W; i = i + 1) s2_same[i] <= s1_new[8*i +: 8] == s1_old[8*i +: 8];
      {s2_first, s2_last, s2_item} <= {s1_first, s1_last, s1_item};
    end
  end
  logic [LW:0] run;                        // equal bytes of this row
  logic [8:0] sum, common;
  logic open, open_before;
  logic [8:0] sum_before;
  logic [7:0] ilen, least;
  always_comb begin
    run = (LW+1)'(W);
    for (i = W - 1; i >= 0; i = i - 1)
      if (!s2_same[i]) run = (LW+1)'(i);
    open = s2_first || open_before;
    sum = (s2_first ? 9'd0 : sum_before) + (open ? 9'(run) : 9'd0);
    ilen = s2_item.ulen + 8'd8;
    least = ilen < before_len ? ilen : before_len;
    common = sum < 9'(least) ? sum : 9'(least);
  end

  logic queue_in;
  pkg::item_t queue_word;
  logic [2:0] queue_count;
  always_comb begin
    queue_word = s2_item;
    queue_word.shared = s2_item.cut.restart ? 8'd0 : common[7:0];
  end
  assign queue_in = s2_valid && s2_last;
  assign stall = queue_in && !queue_ready;
  always_ff @(posedge clk) begin
    if (rst) before_len <= '0;
    else if (queue_in && queue_ready && s2_item.keep) before_len <= ilen;
    if (s2_valid && !stall) begin
      open_before <= open && (&s2_same);
      sum_before <= sum;
    end
  end
  fifo #(.WIDTH(pkg::ITEM_BITS), .LG(2)) queue (
    .clk, .rst, .in_valid(queue_in), .in_ready(queue_ready), .in_word(queue_word),
    .out_valid(item_valid), .out_ready(item_ready), .out_word(item), .count(queue_count)
  );

  // The oldest slot that may still be read. Slots in the stages behind it are newer.
  always_comb begin
    oldest_valid = 1'b1;
    oldest = reading_slot;
    if (!reading) begin
      oldest = item.slot;
      oldest_valid = item_valid;
    end
  end
  assign read_row = ring[{read_slot, read_at[7:LW]}];
  assign ahead_row = ring[{ahead_slot, ahead_at[7:LW]}];

  logic unused;
  assign unused = ^{queue_count, common[8], read_at[LW-1:0], ahead_at[LW-1:0], in_op.replay, in_op.split, in_op.slot,
      twice[8*W-1:0]};
endmodule
