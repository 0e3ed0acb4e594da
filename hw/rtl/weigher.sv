// The sums of weights (ledger). Hashes meet decisions, are mixed with the value's length and go to the engines in turn,
// value words to the engine of their entry; weights come back in the order of the entries and are added as decided.
//
// An engine takes 32 bytes a cycle, so one keeps up with a stream of 16 or 32. With more, values larger than the ring of an
// engine are weighed at 32 bytes a cycle, because the four lanes of a content hash allow no more.
//
// Keeps: each entry's weight is added once, in order, so the weights of deletes that wait are dropped or forgotten in their
// place.
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
  localparam logic [63:0] K1 = 64'he703_7ed1_a0b4_28db;
  localparam int ENGINES = W > 32 ? W / 32 : 1;
  localparam int EL = ENGINES == 1 ? 1 : $clog2(ENGINES);
  integer i;
  genvar g;
  function automatic logic [EL-1:0] after(input logic [EL-1:0] engine);
    after = engine == EL'(ENGINES - 1) ? '0 : engine + 1'b1;
  endfunction

  // ---- seeds: the key's hash mixed with the length, two cycles ----
  logic a_valid, b_valid, c_valid, a_go, b_go, c_go, c_leaves, lengths_ready, deals;
  pkg::weight_op_t a_op, b_op, c_op;
  logic [63:0] a_hash, b_hash, c_seed;
  logic [42:0] b_low, b_middle, b_low_2, b_middle_2;     // of the length's 17 low bits, and of those behind them
  logic [28:0] b_high;
  assign c_go = !c_valid || c_leaves;
  assign b_go = !b_valid || c_go;
  assign a_go = !a_valid || b_go;
  // Every op but the end has a hash. Those of the side way stop here.
  assign op_ready = a_go && lengths_ready && (op.stop || hash_valid);
  assign hash_ready = a_go && lengths_ready && op_valid && !op.stop;
  assign deals = op_valid && op_ready && !op.stop && !op.skip;
  always_ff @(posedge clk) begin
    if (rst) begin
      {a_valid, b_valid, c_valid} <= '0;
    end else begin
      if (a_go) a_valid <= deals || (op_valid && op_ready && op.stop);
      if (b_go) b_valid <= a_valid;
      if (c_go) c_valid <= b_valid;
    end
    if (a_go) {a_op, a_hash} <= {op, hash};
    if (b_go) begin
      {b_op, b_hash} <= {a_op, a_hash};
      b_low <= 43'(a_op.vlen[16:0]) * 43'(K1[25:0]);
      b_middle <= 43'(a_op.vlen[16:0]) * 43'(K1[51:26]);
      b_high <= 29'(a_op.vlen[16:0]) * 29'(K1[63:52]);
      b_low_2 <= 43'(a_op.vlen[27:17]) * 43'(K1[25:0]);
      b_middle_2 <= 43'(a_op.vlen[27:17]) * 43'(K1[51:26]);
    end
    if (c_go) begin
      c_op <= b_op;
      c_seed <= b_hash ^ (64'(b_low) + {b_middle[37:0], 26'd0} + {b_high[11:0], 52'd0} + {4'd0, b_low_2, 17'd0}
          + {b_middle_2[20:0], 43'd0});
    end
  end

  // ---- to the engines ----
  logic [ENGINES-1:0] e_ready, e_valid, w_ready, o_valid, o_ready;
  logic [64*ENGINES-1:0] o_weight, o_zeroed;
  logic [EL-1:0] turn, back;
  logic notes_ready;
  assign c_leaves = notes_ready && (c_op.stop || e_ready[turn]);
  always_ff @(posedge clk) begin
    if (rst) turn <= '0;
    else if (c_valid && c_leaves && !c_op.stop) turn <= after(turn);
  end

  // Whose value words come, in the order of the entries: a queue of lengths. Words may come before their entry is dealt.
  logic length_valid, length_next;
  logic [EL-1:0] turn_ahead;
  logic [EL+27:0] length;
  logic [5:0] lengths_count;
  fifo #(.WIDTH(28 + EL), .LG(5)) lengths (
    .clk, .rst, .in_valid(deals && op.vlen != '0), .in_ready(lengths_ready),
    .in_word({turn_ahead, op.vlen}), .out_valid(length_valid), .out_ready(length_next),
    .out_word(length), .count(lengths_count)
  );
  logic [27:0] passed, whole;               // bytes of this value
  logic [EL-1:0] owner;
  logic word_go;
  assign {owner, whole} = length;
  assign tap_ready = length_valid && w_ready[owner];
  assign word_go = tap_valid && tap_ready;
  assign length_next = word_go && whole - passed <= 28'(W);
  always_ff @(posedge clk) begin
    if (rst) turn_ahead <= '0;
    else if (deals) turn_ahead <= after(turn_ahead);
    if (rst || length_next) passed <= '0;
    else if (word_go) passed <= passed + 28'(W);
  end

  generate
    for (g = 0; g < ENGINES; g = g + 1) begin : g_engine
      assign e_valid[g] = c_valid && c_leaves && !c_op.stop && turn == EL'(g);
      assign o_ready[g] = adds && back == EL'(g);
      weigh_engine #(.W(W), .CELLS(CELLS)) engine (
        .clk, .rst, .entry_valid(e_valid[g]), .entry_ready(e_ready[g]), .seed(c_seed), .tag(c_op.tag),
        .vlen(c_op.vlen), .zero_too(c_op.fate == pkg::ZEROES),
        .word_valid(word_go && owner == EL'(g)), .word_ready(w_ready[g]), .word(tap),
        .out_valid(o_valid[g]), .out_ready(o_ready[g]), .out_weight(o_weight[64*g +: 64]),
        .out_zeroed(o_zeroed[64*g +: 64])
      );
    end
  endgenerate

  // ---- the sums ----
  // What becomes of an entry waits for its weight. What is decided about waiting deletes comes first, in a cycle of its own.
  logic n_valid, n_next, n_stop, n_drop, n_free, told, tells, adds;
  logic [1:0] n_fate;
  logic [5:0] n_count;
  logic [63:0] waiting, weight, zeroed;     // waiting: of free deletes
  fifo #(.WIDTH(5), .LG(5)) notes (
    .clk, .rst, .in_valid(c_valid && c_leaves), .in_ready(notes_ready),
    .in_word({c_op.stop, c_op.drop_held, c_op.free_held, c_op.fate}), .out_valid(n_valid), .out_ready(n_next),
    .out_word({n_stop, n_drop, n_free, n_fate}), .count(n_count)
  );
  assign tells = n_valid && (n_drop || n_free) && !told;
  assign adds = n_valid && !tells && !n_stop && o_valid[back];
  assign n_next = adds || (n_valid && !tells && n_stop);
  always_comb begin
    {weight, zeroed} = {o_weight[63:0], o_zeroed[63:0]};
    for (i = 1; i < ENGINES; i = i + 1)
      if (back == EL'(i)) {weight, zeroed} = {o_weight[64*i +: 64], o_zeroed[64*i +: 64]};
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      {sum_in, sum_dropped, sum_zeroed, waiting} <= '0;
      {told, done} <= '0;
      back <= '0;
    end else begin
      told <= tells || (told && !n_next);
      if (tells) begin
        if (n_drop) sum_dropped <= sum_dropped + waiting;
        waiting <= '0;
      end
      if (adds) begin
        back <= after(back);
        sum_in <= sum_in + weight;
        case (n_fate)
          pkg::HIDES: sum_dropped <= sum_dropped + weight;
          pkg::ZEROES: sum_zeroed <= sum_zeroed + zeroed - weight;
          pkg::WAITS: waiting <= waiting + weight;
          default: ;
        endcase
      end
      if (n_valid && n_stop && !tells) done <= 1'b1;
    end
  end

  logic unused;
  assign unused = ^{lengths_count, n_count, b_middle[42:38], b_high[28:12], b_middle_2[42:21], c_op.skip};
endmodule
