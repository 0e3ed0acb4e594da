// One compaction unit: takes a command, merges the block set of an input slot and fills an output slot.
//
// Steps: header and tables, then the set, then the status record. The first fault wins: reading stops, what the bus owes is
// awaited, the parts between are cleared, and the status record says what was wrong.
//
// Keeps: nothing between sets. Every command ends with a status record, unless its places are bad.
// Leaves to others: registers (csr), memories (outside).
module unit #(
  parameter int W = 16,
  parameter int N = 4,
  parameter int CELLS = 6
) (
  input  logic         clk,
  input  logic         rst,
  // A command runs while `command_valid`.
  input  logic         command_valid,
  input  logic [255:0] command,
  output logic         command_done,
  output logic [7:0]   command_code,
  output logic         command_silent,
  input  logic         abort,
  input  logic         reset_wanted,
  output logic         reset_done,
  output logic         beat_read,
  output logic         beat_written,
  // AXI4, 64 bytes wide, one id each way.
  output logic         ar_valid,
  input  logic         ar_ready,
  output logic [63:0]  ar_address,
  output logic [7:0]   ar_len,
  input  logic         r_valid,
  output logic         r_ready,
  input  logic [511:0] r_beat,
  input  logic [1:0]   r_resp,
  input  logic         r_last,
  output logic         aw_valid,
  input  logic         aw_ready,
  output logic [63:0]  aw_address,
  output logic [7:0]   aw_len,
  output logic         w_valid,
  input  logic         w_ready,
  output logic [511:0] w_beat,
  output logic         w_last,
  input  logic         b_valid,
  output logic         b_ready,
  input  logic [1:0]   b_resp
);
  localparam int CW = $clog2(W + 2);
  localparam int BW = 1 + 8*W + CW + 64 + pkg::VLEN + 5;
  localparam int AREA = pkg::AREA_BITS;
  integer i;
  genvar g;

  // ---- the command ----
  logic [63:0] in_base, out_base, tag;
  logic [31:0] in_bytes, out_bytes;
  assign {tag, out_bytes, in_bytes, out_base, in_base} = command;
  logic sound;
  assign sound = in_base[5:0] == '0 && out_base[5:0] == '0 && in_bytes[5:0] == '0
      && out_bytes[5:0] == '0 && in_bytes >= 32'd512 && out_bytes >= 32'd1024
      && in_base + 64'(in_bytes) >= in_base && out_base + 64'(out_bytes) >= out_base;

  // ---- steps ----
  typedef enum logic [3:0] {
    REST, CHECK, TABLES, GO, RUN, HALT, CLEAR, STATUS, SILENT, FINISH
  } state_e;
  state_e state;
  logic clear, clear_all, halt, begin_set, begin_tables;
  logic fault_here, aborted;
  pkg::fault_t fault, fault_now;
  logic [63:0] cycles;
  logic head_done, head_good, head_bad, head_idle, fetch_idle, store_quiet, store_complete;
  logic store_finished, weigh_done;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= REST;
      aborted <= 1'b0;
    end else begin
      if (abort) aborted <= 1'b1;
      case (state)
        REST: if (command_valid && !reset_wanted) state <= CHECK;
        CHECK: state <= sound ? TABLES : SILENT;
        TABLES:
          if (fault_here) state <= HALT;
          else if (head_done) state <= GO;
        GO: state <= RUN;
        RUN:
          if (fault_here) state <= HALT;
          else if (store_complete && weigh_done && fetch_idle && all_ended) state <= STATUS;
        HALT: if (head_idle && fetch_idle && store_quiet) state <= CLEAR;
        CLEAR: state <= reset_wanted ? REST : STATUS;
        STATUS: if (store_finished) state <= FINISH;
        SILENT: state <= FINISH;
        default: begin
          state <= REST;
          aborted <= 1'b0;
        end
      endcase
      // A reset ends what runs without a record, once the bus is at rest.
      if (reset_wanted && (state == TABLES || state == GO || state == RUN)) state <= HALT;
      if (reset_wanted && state == REST) aborted <= 1'b0;
    end
    if (state == CHECK) begin
      cycles <= '0;
      fault <= {pkg::OK, 8'd255, 32'hffff_ffff, 32'hffff_ffff};
    end else begin
      cycles <= cycles + 1'b1;
    end
    if (fault_here && (state == TABLES || state == RUN)) fault <= fault_now;
    if (state == SILENT) fault.code <= pkg::HEADER;
  end
  assign begin_tables = state == CHECK && sound;
  assign begin_set = state == GO;
  // In CLEAR too: a burst that began as its beats are forgotten would never end.
  assign halt = state == HALT || state == CLEAR;
  assign clear = rst || state == CLEAR || state == REST;
  assign clear_all = rst || state == REST;
  assign command_done = state == FINISH;
  assign command_code = fault.code;
  assign command_silent = fault.way == 8'd255 && fault.code == pkg::HEADER && !sound;
  assign reset_done = reset_wanted && state == REST;

  // ---- header and tables ----
  logic [4:0] block_lg;
  logic drop_tombstones, zero_seqs;
  logic [15:0] interval, s_low, in_use;
  logic [31:0] tables_end;
  logic [1023:0] snapshots;
  logic [32*(N+1)-1:0] first, count;
  logic h_ar_valid, f_ar_valid;
  logic [63:0] h_ar_address, f_ar_address;
  logic [7:0] h_ar_len, f_ar_len;
  logic reads_tables, head_in, head_first, head_last, head_sum_valid;
  logic [63:0] read_a, read_b;
  assign reads_tables = state != RUN && !fetched;
  logic fetched;                            // the set's bursts, not the tables', are under way
  always_ff @(posedge clk)
    if (clear_all) fetched <= 1'b0;
    else if (state == GO) fetched <= 1'b1;
  head #(.N(N)) head (
    .clk, .rst(clear), .halt, .begin_set(begin_tables), .base(in_base), .in_bytes, .out_bytes, .tag,
    .done(head_done), .good(head_good), .bus_bad(head_bad),
    .ar_valid(h_ar_valid), .ar_ready(ar_ready && reads_tables), .ar_address(h_ar_address),
    .ar_len(h_ar_len), .r_valid(r_valid && reads_tables), .r_beat, .r_bad(r_resp[1]), .r_last,
    .idle(head_idle), .sum_in(head_in), .sum_first(head_first), .sum_last(head_last), .sum_valid(head_sum_valid),
    .sum_a(read_a), .sum_b(read_b), .block_lg, .drop_tombstones, .zero_seqs, .interval, .s_low, .in_use,
    .tables_end, .snapshots, .first, .count
  );

  // ---- areas to entries ----
  logic [N:0] area_valid, area_ready, word_valid, word_ready, key_valid, key_ready;
  logic [N:0] value_valid, value_ready, held_valid, held_ready, ended, d_fault_valid;
  logic [(N+1)*AREA-1:0] area;
  logic [(N+1)*512-1:0] word;
  logic [(N+1)*BW-1:0] key_beat;
  logic [(N+1)*8*W-1:0] value, held;
  logic [(N+1)*pkg::FAULT_BITS-1:0] d_fault;
  logic fetch_fault_valid, gc_fault_valid, restarts_full, out_full, write_bad;
  pkg::fault_t fetch_fault, gc_fault;
  // Eight bursts of twenty beats keep the port at work while memory takes 100 cycles, but not if all of it is needed.
  fetch #(.N(N), .LOG(W > 32 ? 4 : 3)) fetch (
    .clk, .rst(clear), .halt, .idle(fetch_idle), .begin_set, .base(in_base), .slot_bytes(in_bytes),
    .tables_end, .first, .count, .ar_valid(f_ar_valid), .ar_ready(ar_ready && !reads_tables),
    .ar_address(f_ar_address), .ar_len(f_ar_len), .r_valid(r_valid && !reads_tables), .r_beat,
    .r_bad(r_resp[1]), .head_in, .head_first, .head_last, .head_sum_valid, .sum_a(read_a), .sum_b(read_b), .area_valid, .area_ready, .area, .word_valid, .word_ready, .word,
    .fault_valid(fetch_fault_valid), .fault(fetch_fault)
  );
  assign ar_valid = reads_tables ? h_ar_valid : f_ar_valid;
  assign ar_address = reads_tables ? h_ar_address : f_ar_address;
  assign ar_len = reads_tables ? h_ar_len : f_ar_len;
  assign r_ready = 1'b1;
  assign beat_read = r_valid;
  assign beat_written = w_valid && w_ready;

  generate
    for (g = 0; g <= N; g = g + 1) begin : g_way
      logic [9:0] depth;
      decoder #(.W(W), .SIDE(g == N)) decoder (
        .clk, .rst(clear), .way(5'(g)), .area_valid(area_valid[g]), .area_ready(area_ready[g]),
        .area(area[AREA*g +: AREA]), .word_valid(word_valid[g]), .word_ready(word_ready[g]),
        .word(word[512*g +: 512]), .key_valid(key_valid[g]), .key_ready(key_ready[g]),
        .key_beat(key_beat[BW*g +: BW]), .value_valid(value_valid[g]), .value_ready(value_ready[g]),
        .value(value[8*W*g +: 8*W]), .ended(ended[g]), .fault_valid(d_fault_valid[g]),
        .fault(d_fault[pkg::FAULT_BITS*g +: pkg::FAULT_BITS])
      );
      fifo #(.WIDTH(8*W), .LG(9), .BLOCK(1)) values (
        .clk, .rst(clear), .in_valid(value_valid[g]), .in_ready(value_ready[g]),
        .in_word(value[8*W*g +: 8*W]), .out_valid(held_valid[g]), .out_ready(held_ready[g]),
        .out_word(held[8*W*g +: 8*W]), .count(depth)
      );
      logic unused_here;
      assign unused_here = ^depth;
    end
  endgenerate
  logic all_ended;
  assign all_ended = &ended;

  // ---- merge, rules, cuts ----
  logic merged_valid, merged_ready;
  logic [BW-1:0] merged;
  tree #(.W(W), .N(N)) tree (
    .clk, .rst(clear), .in_valid(key_valid), .in_ready(key_ready), .in_beat(key_beat),
    .out_valid(merged_valid), .out_ready(merged_ready), .out_beat(merged)
  );
  logic hash_valid, hash_ready, w_op_valid, w_op_ready, op_valid, op_ready, op_last;
  logic [8*W-1:0] hash_row, op_row;
  logic [CW-1:0] hash_count;
  pkg::weight_op_t w_op;
  pkg::op_t op;
  logic [32*N-1:0] entries_in;
  logic [63:0] logical_in, hidden, elided, zeroed, replayed;
  gc #(.W(W), .N(N)) gc (
    .clk, .rst(clear), .drop_tombstones, .zero_seqs, .in_use_at_start(in_use), .snapshots, .begin_set,
    .in_valid(merged_valid), .in_ready(merged_ready), .in_beat(merged),
    .hash_valid, .hash_ready, .hash_row, .hash_count,
    .weight_valid(w_op_valid), .weight_ready(w_op_ready), .weight(w_op),
    .out_valid(op_valid), .out_ready(op_ready), .out_op(op), .out_row(op_row), .out_last(op_last),
    .entries_in, .bytes_in(logical_in), .hidden, .elided, .zeroed, .replayed,
    .fault_valid(gc_fault_valid), .fault(gc_fault)
  );
  logic cut_valid, cut_ready, cut_last;
  pkg::op_t cut_op;
  pkg::cut_t cut;
  logic [8*W-1:0] cut_row;
  plan #(.W(W)) plan (
    .clk, .rst(clear), .begin_set, .block_lg, .interval, .s_at_start(s_low),
    .in_valid(op_valid), .in_ready(op_ready), .in_op(op), .in_row(op_row), .in_last(op_last),
    .out_valid(cut_valid), .out_ready(cut_ready), .out_op(cut_op), .out_cut(cut),
    .out_row(cut_row), .out_last(cut_last)
  );

  // ---- bytes of blocks ----
  logic item_valid, item_ready, reading;
  pkg::item_t item;
  logic [1:0] read_slot, reading_slot;
  logic [1:0] ahead_slot;
  logic [7:0] read_at, ahead_at;
  logic [8*W-1:0] read_row, ahead_row;
  prefix #(.W(W)) prefix (
    .clk, .rst(clear), .in_valid(cut_valid), .in_ready(cut_ready), .in_op(cut_op), .in_cut(cut),
    .in_row(cut_row), .in_last(cut_last), .item_valid, .item_ready, .item,
    .read_slot, .read_at, .read_row, .ahead_slot, .ahead_at, .ahead_row, .reading, .reading_slot
  );
  logic tap_valid, tap_ready, piece_valid, piece_ready, piece_end;
  logic [8*W-1:0] tap, piece;
  logic [$clog2(W)-1:0] piece_from;
  logic [$clog2(W):0] piece_len;
  pkg::block_t piece_block;
  logic waits_items, waits_values, waits_out;
  encoder #(.W(W), .N(N)) encoder (
    .clk, .rst(clear), .item_valid, .item_ready, .item, .read_slot, .read_at, .read_row, .ahead_slot,
    .ahead_at, .ahead_row, .reading, .reading_slot, .value_valid(held_valid), .value_ready(held_ready), .value(held),
    .tap_valid, .tap_ready, .tap, .piece_valid, .piece_ready, .piece, .piece_from, .piece_len,
    .piece_end, .piece_block, .waits_items, .waits_values, .waits_out, .fault_valid(restarts_full)
  );
  // A queue in between, so that what store is ready for does not reach back to values and weigher within a cycle.
  localparam int PIECE = 8*W + 2*$clog2(W) + 2 + pkg::BLOCK_BITS;
  logic laid_valid, laid_ready, laid_end;
  logic [8*W-1:0] laid;
  logic [$clog2(W)-1:0] laid_from;
  logic [$clog2(W):0] laid_len;
  pkg::block_t laid_block;
  logic [2:0] pieces_count;
  fifo #(.WIDTH(PIECE), .LG(2)) pieces (
    .clk, .rst(clear), .in_valid(piece_valid), .in_ready(piece_ready),
    .in_word({piece, piece_from, piece_len, piece_end, piece_block}), .out_valid(laid_valid), .out_ready(laid_ready),
    .out_word({laid, laid_from, laid_len, laid_end, laid_block}), .count(pieces_count)
  );
  logic packed_valid, packed_ready, packed_some, packed_end;
  logic [8*W-1:0] packed_word;
  pkg::block_t packed_block;
  packer #(.W(W)) packer (
    .clk, .rst(clear), .piece_valid(laid_valid), .piece_ready(laid_ready), .piece(laid), .piece_from(laid_from),
    .piece_len(laid_len), .piece_end(laid_end), .piece_block(laid_block), .out_valid(packed_valid), .out_ready(packed_ready), .out_some(packed_some),
    .out_word(packed_word), .out_end(packed_end), .out_block(packed_block)
  );

  // ---- sums of weights ----
  logic hashed_valid, hashed_ready, wq_valid, wq_ready;
  logic [63:0] hashed, sum_in, sum_dropped, sum_zeroed;
  pkg::weight_op_t wq;
  logic [4:0] wq_count;
  hasher #(.W(W)) hasher (
    .clk, .rst(clear), .in_valid(hash_valid), .in_ready(hash_ready), .in_row(hash_row),
    .in_count(hash_count), .out_valid(hashed_valid), .out_ready(hashed_ready), .out_hash(hashed)
  );
  fifo #(.WIDTH(pkg::WEIGHT_OP_BITS), .LG(4)) weights (
    .clk, .rst(clear), .in_valid(w_op_valid), .in_ready(w_op_ready), .in_word(w_op),
    .out_valid(wq_valid), .out_ready(wq_ready), .out_word(wq), .count(wq_count)
  );
  weigher #(.W(W), .CELLS(CELLS)) weigher (
    .clk, .rst(clear), .op_valid(wq_valid), .op_ready(wq_ready), .op(wq), .hash_valid(hashed_valid),
    .hash_ready(hashed_ready), .hash(hashed), .tap_valid, .tap_ready, .tap,
    .sum_in, .sum_dropped, .sum_zeroed, .done(weigh_done)
  );

  // ---- faults: the first one, in the order of the ways ----
  logic any_fault;
  pkg::fault_t a_fault;
  always_comb begin
    any_fault = |d_fault_valid || gc_fault_valid || restarts_full || out_full;
    a_fault = {pkg::OUT_FULL, 8'd255, 32'hffff_ffff, 32'hffff_ffff};
    if (gc_fault_valid) a_fault = gc_fault;
    for (i = N; i >= 0; i = i - 1)
      if (d_fault_valid[i]) a_fault = d_fault[pkg::FAULT_BITS*i +: pkg::FAULT_BITS];
  end
  always_ff @(posedge clk) begin
    fault_here <= 1'b0;
    fault_now <= a_fault;
    if (!clear) begin
      fault_here <= any_fault || fetch_fault_valid || aborted || write_bad
          || head_bad || (head_done && !head_good);
      if (fetch_fault_valid) fault_now <= fetch_fault;
      if (head_bad || write_bad || (head_done && !head_good) || aborted) begin
        fault_now <= {pkg::HEADER, 8'd255, 32'hffff_ffff, 32'hffff_ffff};
        if (head_bad || write_bad) fault_now.code <= pkg::LINK;
        if (aborted) fault_now.code <= pkg::ABORTED;
      end
    end
  end

  // ---- the way back ----
  logic [31:0] blocks, used;
  logic [1535:0] status;
  logic [383:0] status_tail;
  logic [31:0] lost [5];
  always_ff @(posedge clk)
    for (i = 0; i < 5; i = i + 1)
      if (state == CHECK) lost[i] <= '0;
      else if (state == RUN && !(&lost[i])) lost[i] <= lost[i] + 32'(loses[i]);
  logic [4:0] loses;
  assign loses = {tap_valid_wanted, waits_out, waits_values, waits_items, !merged_valid && merged_ready};
  logic tap_valid_wanted;
  assign tap_valid_wanted = !tap_ready && !waits_values && !waits_items;
  always_comb begin
    status = '0;
    status[31:0] = 32'h4154_534c;
    status[47:32] = pkg::VERSION;
    status[55:48] = fault.code;
    status[63:56] = fault.way;
    status[127:64] = tag;
    status[159:128] = fault.descriptor;
    status[191:160] = fault.entry;
    status[223:192] = fault.code == pkg::OK ? blocks : 32'd0;
    status[255:224] = used;
    status[319:256] = logical_in;
    status[383:320] = sum_in;
    status[447:384] = hidden;
    status[511:448] = elided;
    status[575:512] = sum_dropped;
    status[639:576] = zeroed;
    status[703:640] = sum_zeroed;
    status[767:704] = replayed;
    status[1024 +: 32*N] = entries_in;
    status_tail = '0;
    status_tail[63:0] = cycles;
    for (i = 0; i < 5; i = i + 1) status_tail[64 + 32*i +: 32] = lost[i];
  end
  store #(.W(W)) store (
    .clk, .rst(clear_all), .halt, .drop(state == CLEAR), .begin_set(begin_tables), .base(out_base),
    .slot_bytes(out_bytes), .tag, .in_valid(packed_valid), .in_ready(packed_ready),
    .in_some(packed_some), .in_word(packed_word), .in_end(packed_end), .in_block(packed_block),
    .finish(state == STATUS), .failed(fault.code != pkg::OK), .status, .status_tail, .finished(store_finished),
    .complete(store_complete), .quiet(store_quiet), .blocks, .used,
    .aw_valid, .aw_ready, .aw_address, .aw_len, .w_valid, .w_ready, .w_beat, .w_last,
    .b_valid, .b_bad(b_resp[1]), .full(out_full), .bus_bad(write_bad)
  );
  assign b_ready = 1'b1;

  logic unused;
  assign unused = ^{wq_count, pieces_count, r_resp[0], b_resp[0]};
endmodule
