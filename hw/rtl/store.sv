// Writes payloads, their records and the status record over one AXI4 write port of 64 bytes.
//
// Payloads fill beats from the start of the output slot; a record for each goes below the status record, downwards.
// Keeps: nothing is written outside of [base, base + slot_bytes), payloads end below their records, no burst
// crosses a line of 4 KiB, and none begins before all of its beats are here. The status record's last beat is
// sent when all else has been acknowledged.
// After `halt` no payload is begun; what was begun is finished, and so are records. `drop` then forgets the rest.
module store #(
  parameter int W = 16
) (
  input  logic           clk,
  input  logic           rst,
  input  logic           halt,
  input  logic           drop,
  input  logic           begin_set,
  input  logic [63:0]    base,
  input  logic [31:0]    slot_bytes,
  input  logic [63:0]    tag,
  // Words from the packer.
  input  logic           in_valid,
  output logic           in_ready,
  input  logic           in_some,
  input  logic [8*W-1:0] in_word,
  input  logic           in_end,
  input  pkg::block_t    in_block,
  // The status record: its first three beats, and what follows F64. `finish` stays until `finished`.
  input  logic           finish,
  input  logic           failed,         // with a code: F64 is of the status record alone
  input  logic [1535:0]  status,
  input  logic [383:0]   status_tail,
  output logic           finished,
  output logic           complete,       // the open record has been made
  output logic           quiet,          // the bus owes nothing and gets nothing
  output logic [31:0]    blocks,         // records of finished blocks
  output logic [31:0]    used,           // bytes of payloads
  // AXI4 write port.
  output logic           aw_valid,
  input  logic           aw_ready,
  output logic [63:0]    aw_address,
  output logic [7:0]     aw_len,
  output logic           w_valid,
  input  logic           w_ready,
  output logic [511:0]   w_beat,
  output logic           w_last,
  input  logic           b_valid,
  input  logic           b_bad,
  output logic           full,           // OUT_FULL
  output logic           bus_bad
);
  logic clear;
  assign clear = rst || drop;

  // ---- beats ----
  logic g_valid, g_ready, g_some, g_end, put;
  logic [511:0] g_beat;
  pkg::block_t g_block;
  gear #(.W(W)) beats (
    .clk, .rst(clear), .in_valid, .in_ready, .in_some, .in_word, .in_end, .in_block,
    .out_valid(g_valid), .out_ready(g_ready), .out_some(g_some), .out_beat(g_beat),
    .out_end(g_end), .out_block(g_block)
  );
  logic [31:0] count, begun;                // beats: so far; before this payload
  logic [26:0] room;                        // beats that this payload may still have, or less than none
  logic no_room, spills;
  logic fresh;                              // the payload has no beat yet
  logic queue_ready, ends_ready;
  assign g_ready = queue_ready && ends_ready && !full && !halt;
  assign no_room = room[26] || room == '0;
  assign spills = g_some && no_room;
  assign put = g_valid && g_ready && g_some && !no_room;
  always_ff @(posedge clk) begin
    if (rst) begin
      count <= '0;
      begun <= '0;
      fresh <= 1'b1;
      full <= 1'b0;
    end else begin
      // Payload k ends at or below its own record, and the first one lies six beats below the end. One that ends right there
      // leaves less than none, as the next record lies where it ends.
      if (begin_set) room <= {1'b0, slot_bytes[31:6]} - 27'd6;
      else room <= room - 27'(put) - 27'(g_valid && g_ready && g_end);
      if (g_valid && g_ready) begin
        if (spills) full <= 1'b1;
        if (put) count <= count + 1'b1;
        if (g_end) begun <= count + 32'(put);
        if (g_some || g_end) fresh <= g_end;
      end
    end
  end
  assign used = {count[25:0], 6'd0};

  logic q_valid, q_ready;
  logic [511:0] q_beat;
  logic [6:0] q_count;
  fifo #(.WIDTH(512), .LG(6), .BLOCK(1)) queue (
    .clk, .rst(clear), .in_valid(put), .in_ready(queue_ready), .in_word(g_beat),
    .out_valid(q_valid), .out_ready(q_ready), .out_word(q_beat), .count(q_count)
  );

  // ---- F64 of payloads, and of what is written behind them ----
  // Payloads come first; a record is summed from its register when no beat of a payload is.
  logic any_sum_valid, sum_valid, rec_sum_valid, summing, rec_due, rec_summed, rec_first, rec_last;
  logic [4:0] sum_channel;
  logic [63:0] sum_a, sum_b;
  logic [511:0] rec;
  assign rec_summed = rec_due && !put;
  f64 both_sums (
    .clk, .rst(clear), .in_valid(put || rec_due), .in_first(put ? fresh : rec_first), .in_last(put ? g_end : rec_last),
    .in_channel({4'd0, !put}), .in_beat(put ? g_beat : rec), .out_valid(any_sum_valid), .out_channel(sum_channel),
    .out_a(sum_a), .out_b(sum_b), .busy(summing)
  );
  assign sum_valid = any_sum_valid && !sum_channel[0];
  assign rec_sum_valid = any_sum_valid && sum_channel[0];

  // ---- records of payloads ----
  // Payloads that ended and fit; those with beats wait for their sum.
  logic e_valid, e_ready;
  pkg::block_t e_block;
  logic [31:0] e_start;
  logic e_empty;
  logic [2:0] e_count, s_count;
  fifo #(.WIDTH(pkg::BLOCK_BITS + 33), .LG(2)) ends (
    .clk, .rst(clear), .in_valid(g_valid && g_ready && g_end && !spills), .in_ready(ends_ready),
    .in_word({g_block, begun, !g_some && fresh}),
    .out_valid(e_valid), .out_ready(e_ready), .out_word({e_block, e_start, e_empty}),
    .count(e_count)
  );
  logic s_valid, sums_ready;
  logic [127:0] s_sum;
  fifo #(.WIDTH(128), .LG(2)) sums (
    .clk, .rst(clear), .in_valid(sum_valid), .in_ready(sums_ready), .in_word({sum_b, sum_a}),
    .out_valid(s_valid), .out_ready(e_ready && !e_empty), .out_word(s_sum), .count(s_count)
  );

  // A record goes into a register, from which it is summed and written.
  logic rec_valid, rec_go, rec_free;
  logic [511:0] made;
  logic [63:0] rec_address;
  assign rec_free = (!rec_valid || rec_go) && (!rec_due || rec_summed);
  assign e_ready = e_valid && (s_valid || e_empty) && rec_free && state == RUN;
  always_comb begin
    made = '0;
    made[31:0] = e_block.open ? 32'h4e50_4f4c : 32'h4b4c_424c;
    made[63:32] = {e_start[25:0], 6'd0};
    made[95:64] = e_block.bytes;
    made[127:96] = e_block.entries;
    made[255:128] = e_empty ? '0 : s_sum;
    made[319:256] = tag;
    made[351:320] = e_block.number;
    made[383:352] = e_block.restarts;
    made[399:384] = e_block.s_low;
    made[416] = e_block.ended;
  end

  typedef enum logic [2:0] {RUN, SUM0, SUM1, SUM2, TOLD, LAST, DONE} state_e;
  state_e state;
  logic rec_in;
  logic none_yet;                           // no record was made yet
  assign rec_in = e_ready || (rec_free && (state == SUM0 || state == SUM1 || state == SUM2));
  logic [63:0] bottom;                      // where the status record begins
  assign bottom = base + 64'(slot_bytes) - 64'd256;
  logic at_rest;
  logic [127:0] told;
  logic told_valid;
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= RUN;
      {rec_valid, rec_due} <= '0;
      none_yet <= 1'b1;
      blocks <= '0;
      complete <= 1'b0;
      finished <= 1'b0;
      told_valid <= 1'b0;
    end else begin
      if (rec_go) rec_valid <= 1'b0;
      if (rec_summed) rec_due <= 1'b0;
      if (rec_in) begin
        none_yet <= 1'b0;
        {rec_valid, rec_due} <= '1;
      end
      if (e_ready) begin
        if (e_block.open) complete <= 1'b1;
        else blocks <= blocks + 1'b1;
      end
      if (rec_sum_valid) told_valid <= 1'b1;
      case (state)
        RUN: if (finish && quiet && !e_valid) state <= SUM0;
        SUM0: if (rec_free) state <= SUM1;
        SUM1: if (rec_free) state <= SUM2;
        SUM2: if (rec_free) state <= TOLD;
        TOLD: if (told_valid && at_rest && !rec_valid) begin
          rec_valid <= 1'b1;
          state <= LAST;
        end
        LAST: if (at_rest && !rec_valid) begin
          finished <= 1'b1;
          state <= DONE;
        end
        default: ;
      endcase
    end
    if (rec_sum_valid) told <= {sum_b, sum_a};
    if (rec_in) begin
      rec_first <= none_yet || (failed && state == SUM0);
      rec_last <= state == SUM2;
    end
    if (rec_free) begin
      case (state)
        RUN: begin
          rec <= made;
          rec_address <= bottom - (e_block.open ? 64'd64 : 64'd128 + {26'd0, e_block.number, 6'd0});
        end
        SUM0: {rec, rec_address} <= {status[511:0], bottom};
        SUM1: {rec, rec_address} <= {status[1023:512], bottom + 64'd64};
        SUM2: {rec, rec_address} <= {status[1535:1024], bottom + 64'd128};
        default: {rec, rec_address} <= {status_tail, told, bottom + 64'd192};
      endcase
    end
  end

  // ---- the bus ----
  logic [31:0] sent;                        // beats of payloads for which a burst began
  logic [6:0] to_line, want;
  logic [63:0] from;
  logic flush, go_data, go_rec, owned, busy_w;
  logic [6:0] w_left;
  logic w_rec;                              // the burst is a record
  logic [8:0] owes;                         // bursts not acknowledged
  // They follow `sent` a cycle later, while the burst that moved it is still under way.
  always_ff @(posedge clk) begin
    from <= base + {26'd0, sent, 6'd0};
    to_line <= 7'd64 - 7'({base[11:6] + sent[5:0]});
  end
  // Behind the last payload nothing more comes, so short bursts are right.
  assign flush = complete || (e_valid && e_block.open) || (g_valid && g_end && g_block.open);
  always_comb begin
    want = 7'd32;
    if (to_line < want) want = to_line;
    if (flush && q_count < want) want = q_count;
  end
  assign owned = busy_w || aw_valid;
  assign go_rec = !owned && rec_valid && !owes[8];
  assign go_data = !owned && !rec_valid && !halt && !owes[8] && q_count != '0 && q_count >= want;
  assign rec_go = go_rec;
  assign w_valid = busy_w && (w_rec || q_valid);
  assign w_beat = w_rec ? w_record : q_beat;
  assign w_last = w_left == 7'd1;
  assign q_ready = busy_w && !w_rec && w_ready;
  assign at_rest = !owned && owes == '0;
  assign quiet = at_rest && !rec_valid && !summing && (q_count == '0 || halt);
  logic [511:0] w_record;
  always_ff @(posedge clk) begin
    if (rst) begin
      aw_valid <= 1'b0;
      busy_w <= 1'b0;
      owes <= '0;
      sent <= '0;
      bus_bad <= 1'b0;
    end else begin
      if (aw_ready) aw_valid <= 1'b0;
      if (go_rec || go_data) begin
        aw_valid <= 1'b1;
        busy_w <= 1'b1;
      end else if (w_valid && w_ready && w_last) begin
        busy_w <= 1'b0;
      end
      if (go_data) sent <= sent + 32'(want);
      owes <= owes + 9'(go_rec || go_data) - 9'(b_valid);
      if (b_valid && b_bad) bus_bad <= 1'b1;
    end
    if (go_rec || go_data) begin
      aw_address <= go_rec ? rec_address : from;
      aw_len <= go_rec ? 8'd0 : 8'(want) - 8'd1;
      w_left <= go_rec ? 7'd1 : want;
      w_rec <= go_rec;
      w_record <= rec;
    end else if (w_valid && w_ready) begin
      w_left <= w_left - 1'b1;
    end
  end

  logic unused;
  assign unused = ^{sum_channel[4:1], e_count, s_count, sums_ready, count[31:26],
      e_start[31:26]};
endmodule
