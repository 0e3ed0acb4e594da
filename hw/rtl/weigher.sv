// The sums of weights (ledger): hashes, decisions and value words of all entries, dealt out to GROUPS groups in turn.
//
// Values arrive one after the other at up to W bytes a cycle; a group takes 16, so W / 16 groups keep up, and a queue in
// block RAM before each holds what is ahead.
//
// Keeps: each entry's weight is in exactly one group's sums. What happens to waiting deletes is told to every group, in its
// place among the entries.
module weigher #(
  parameter int W = 16,
  parameter int CELLS = 6
) (
  input  logic            clk,
  input  logic            rst,
  input  logic            op_valid,
  output logic            op_ready,
  input  pkg::weight_op_t op,
  input  logic            hash_valid,
  output logic            hash_ready,
  input  logic [63:0]     hash,
  input  logic            tap_valid,
  output logic            tap_ready,
  input  logic [8*W-1:0]  tap,
  output logic [63:0]     sum_in,
  output logic [63:0]     sum_dropped,
  output logic [63:0]     sum_zeroed,
  output logic            done
);
  localparam int GROUPS = W / 16;
  localparam int GL = GROUPS == 1 ? 1 : $clog2(GROUPS);
  localparam int OW = pkg::WEIGHT_OP_BITS + 64;
  integer i;
  genvar g;

  logic [GROUPS-1:0] g_op_ready, g_tap_ready, stopped;
  logic [64*GROUPS-1:0] in_part, dropped_part, zeroed_part;

  // An op meets its key's hash. Those that every group must see go to all at once.
  logic go, all, shared_flags;
  logic [GL-1:0] turn;
  pkg::weight_op_t noted;
  assign shared_flags = op.drop_held || op.free_held;
  // Flags go ahead as an op of their own; then the entry follows without them.
  logic told;
  assign all = op.stop || (shared_flags && !told);
  assign go = op_valid && (all ? &g_op_ready : hash_valid && (op.skip || g_op_ready[turn]))
      && (lengths_ready || all);
  assign op_ready = go && (op.stop || !all);
  assign hash_ready = go && !all;
  always_comb begin
    noted = op;
    noted.skip = all && !op.stop;
    if (!all) {noted.drop_held, noted.free_held} = '0;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      turn <= '0;
      told <= 1'b0;
    end else if (go) begin
      told <= all && !op.stop;
      if (!all && !op.skip) turn <= turn == GL'(GROUPS - 1) ? '0 : turn + 1'b1;
    end
  end

  // Whose value words come, in the order of the entries: a queue of lengths.
  logic lengths_ready, length_valid, length_next;
  logic [GL+27:0] length;
  logic [5:0] lengths_count;
  fifo #(.WIDTH(28 + GL), .LG(5)) lengths (
    .clk, .rst, .in_valid(go && !all && !op.skip && op.vlen != '0), .in_ready(lengths_ready),
    .in_word({turn, op.vlen}), .out_valid(length_valid), .out_ready(length_next),
    .out_word(length), .count(lengths_count)
  );
  logic [27:0] passed;                      // bytes of this value
  logic [GL-1:0] owner;
  logic [27:0] whole, upto;
  logic word_go, word_last;
  logic [$clog2(W/16+1)-1:0] rows_here;     // rows of 16 bytes of this word that count
  assign {owner, whole} = length;
  assign upto = whole - passed;
  assign word_last = upto <= 28'(W);
  assign tap_ready = length_valid && g_tap_ready[owner];
  assign word_go = tap_valid && tap_ready;
  assign length_next = word_go && word_last;
  assign rows_here = word_last ? ($clog2(W/16+1))'((upto + 28'd15) >> 4) : ($clog2(W/16+1))'(W/16);
  always_ff @(posedge clk) begin
    if (rst || length_next) passed <= '0;
    else if (word_go) passed <= passed + 28'(W);
  end

  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      logic q_valid, q_ready, w_valid, w_ready;
      pkg::weight_op_t q_op;
      logic [63:0] q_hash;
      logic [8*W-1:0] w_word;
      logic [$clog2(W/16+1)-1:0] w_rows, at;
      logic [3:0] q_count;
      logic [9:0] w_count;
      logic row_ready;
      fifo #(.WIDTH(OW), .LG(3)) ops (
        .clk, .rst, .in_valid(go && (all || (!op.skip && turn == GL'(g)))), .in_ready(g_op_ready[g]),
        .in_word({noted, hash}), .out_valid(q_valid), .out_ready(q_ready), .out_word({q_op, q_hash}),
        .count(q_count)
      );
      fifo #(.WIDTH(8*W + $clog2(W/16+1)), .LG(9), .BLOCK(1)) words (
        .clk, .rst, .in_valid(word_go && owner == GL'(g)), .in_ready(g_tap_ready[g]),
        .in_word({rows_here, tap}), .out_valid(w_valid), .out_ready(w_ready),
        .out_word({w_rows, w_word}), .count(w_count)
      );
      // Rows of 16 bytes out of words.
      assign w_ready = row_ready && at + 1'b1 == w_rows;
      always_ff @(posedge clk)
        if (rst) at <= '0;
        else if (w_valid && row_ready) at <= w_ready ? '0 : at + 1'b1;
      weigh_group #(.CELLS(CELLS)) group (
        .clk, .rst, .op_valid(q_valid), .op_ready(q_ready), .op(q_op), .hash(q_hash),
        .row_valid(w_valid), .row_ready, .row(w_word[128*32'(at) +: 128]),
        .sum_in(in_part[64*g +: 64]), .sum_dropped(dropped_part[64*g +: 64]),
        .sum_zeroed(zeroed_part[64*g +: 64]), .stopped(stopped[g])
      );
      logic unused_here;
      assign unused_here = ^{q_count, w_count};
    end
  endgenerate

  always_comb begin
    {sum_in, sum_dropped, sum_zeroed} = '0;
    for (i = 0; i < GROUPS; i = i + 1) begin
      sum_in = sum_in + in_part[64*i +: 64];
      sum_dropped = sum_dropped + dropped_part[64*i +: 64];
      sum_zeroed = sum_zeroed + zeroed_part[64*i +: 64];
    end
  end
  assign done = &stopped;

  logic unused;
  assign unused = ^lengths_count;
endmodule
