// Weighs a share of the entries: cells that take entries in turn, one engine of two multipliers for all of them, and
// the sums. One value comes in at a time, 16 bytes a cycle; while it comes, other cells finish theirs.
//
// Keeps: entries are added to the sums in their order, so a weight that waits for the fate of its delete (D3) is dropped or
// forgotten with the right ones.
module weigh_group #(
  parameter int CELLS = 6
) (
  input  logic            clk,
  input  logic            rst,
  input  logic            op_valid,
  output logic            op_ready,
  input  pkg::weight_op_t op,
  input  logic [63:0]     hash,           // of the entry's key
  input  logic            row_valid,
  output logic            row_ready,
  input  logic [127:0]    row,
  output logic [63:0]     sum_in,
  output logic [63:0]     sum_dropped,
  output logic [63:0]     sum_zeroed,
  output logic            stopped         // the set's last op has been added
);
  localparam logic [63:0] K0 = 64'ha076_1d64_78bd_642f;
  localparam logic [63:0] K1 = 64'he703_7ed1_a0b4_28db;
  localparam int CL = CELLS == 1 ? 1 : $clog2(CELLS);
  integer i;
  genvar g;

  // ---- seeds: the hash mixed with the length, two cycles ----
  // An op steps through these registers alone; nothing waits behind it that could go on without it.
  logic a_valid, b_valid, c_valid, a_go, b_go, c_go;
  pkg::weight_op_t a_op, b_op, c_op;
  logic [63:0] a_hash, b_hash, c_seed;
  logic [63:0] b_low, b_high;
  assign c_go = !c_valid || given;
  assign b_go = !b_valid || c_go;
  assign a_go = !a_valid || b_go;
  assign op_ready = a_go;
  always_ff @(posedge clk) begin
    if (rst) begin
      {a_valid, b_valid, c_valid} <= '0;
    end else begin
      if (a_go) a_valid <= op_valid;
      if (b_go) b_valid <= a_valid;
      if (c_go) c_valid <= b_valid;
    end
    if (a_go) {a_op, a_hash} <= {op, hash};
    if (b_go) begin
      {b_op, b_hash} <= {a_op, a_hash};
      b_low <= 64'(a_op.vlen) * 64'(K1[31:0]);
      b_high <= 64'(a_op.vlen) * 64'(K1[63:32]);
    end
    if (c_go) begin
      c_op <= b_op;
      c_seed <= b_hash ^ (b_low + {b_high[31:0], 32'd0});
    end
  end

  // ---- whose turn: to begin, to be fed, to be added ----
  logic [CL-1:0] giver, eater, adder;
  logic given, begins, adds;
  logic [CELLS-1:0] idle, done, cell_row_ready, begin_entry, taken, eats;
  logic [27:0] left;                        // rows still to feed to `eater`
  logic feeding, plain;
  // What is to be added besides a weight stands with the entry.
  logic [pkg::WEIGHT_OP_BITS-1:0] notes [CELLS];
  assign plain = !c_op.stop && !c_op.skip;  // an entry to weigh
  // What is told of waiting deletes goes with the next entry of this group. If more is told before one comes, nothing can
  // have begun to wait here in between, so the first word counts. The end waits until all entries have been added.
  logic all_idle, drop_told, free_told;
  assign all_idle = &idle && !(|begin_entry);
  assign begins = c_valid && plain && idle[giver] && !feeding;
  assign given = c_valid && (plain ? begins : !c_op.stop || (all_idle && !feeding));

  always_comb
    for (i = 0; i < CELLS; i = i + 1) begin
      begin_entry[i] = begins && giver == CL'(i);
      eats[i] = row_valid && feeding && eater == CL'(i);
      taken[i] = adds && adder == CL'(i);
    end
  assign adds = done[adder];
  assign row_ready = feeding && cell_row_ready[eater];

  always_ff @(posedge clk) begin
    if (rst) begin
      {giver, eater, adder} <= '0;
      feeding <= 1'b0;
      {drop_told, free_told} <= '0;
    end else begin
      if (begins) begin
        {drop_told, free_told} <= '0;
        giver <= giver == CL'(CELLS - 1) ? '0 : giver + 1'b1;
        eater <= giver;
        feeding <= c_op.vlen != '0;
        left <= {4'd0, c_op.vlen[27:4]} + 28'(|c_op.vlen[3:0]);
      end else if (row_valid && row_ready) begin
        left <= left - 1'b1;
        if (left == 28'd1) feeding <= 1'b0;
      end
      if (given && c_op.skip && !drop_told && !free_told)
        {drop_told, free_told} <= {c_op.drop_held, c_op.free_held};
      if (adds) adder <= adder == CL'(CELLS - 1) ? '0 : adder + 1'b1;
    end
    if (begins) notes[giver] <= begun;
  end

  pkg::weight_op_t begun;
  always_comb begin
    begun = c_op;
    if (drop_told || free_told) {begun.drop_held, begun.free_held} = {drop_told, free_told};
  end

  // ---- the sums ----
  logic [63:0] weight [CELLS], weight_zeroed [CELLS];
  logic [63:0] waiting;                     // of free deletes that wait
  logic [63:0] this_weight, this_zeroed;
  pkg::weight_op_t note;
  always_comb begin
    this_weight = weight[adder];
    this_zeroed = weight_zeroed[adder];
    note = adds ? notes[adder] : begun;
  end
  logic settles;
  assign settles = adds || (given && c_op.stop);
  logic [63:0] waiting_then, dropped_then;
  always_comb begin
    waiting_then = waiting;
    dropped_then = sum_dropped;
    if (note.drop_held) dropped_then = sum_dropped + waiting;
    if (note.drop_held || note.free_held) waiting_then = '0;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      {sum_in, sum_dropped, sum_zeroed, waiting} <= '0;
      stopped <= 1'b0;
    end else if (settles) begin
      waiting <= waiting_then;
      sum_dropped <= dropped_then;
      if (adds) begin
        sum_in <= sum_in + this_weight;
        case (note.fate)
          pkg::HIDES: sum_dropped <= dropped_then + this_weight;
          pkg::ZEROES: sum_zeroed <= sum_zeroed + this_zeroed - this_weight;
          pkg::WAITS: waiting <= waiting_then + this_weight;
          default: ;
        endcase
      end else if (c_op.stop) begin
        stopped <= 1'b1;
      end
    end
  end

  // ---- cells, and the engine they share ----
  logic [CELLS-1:0] ask_valid, ask_ready, ask_first, ask_single;
  logic [2*CELLS-1:0] ask_lane;
  logic [64*CELLS-1:0] ask_state;
  logic [128*CELLS-1:0] ask_a, ask_b;
  logic reply_valid;
  logic [CL-1:0] reply_cell;
  logic [1:0] reply_lane;
  logic [63:0] reply;
  generate
    for (g = 0; g < CELLS; g = g + 1) begin : g_cell
      weigh_cell one (
        .clk, .rst, .begin_entry(begin_entry[g]), .seed(c_seed), .tag(c_op.tag), .vlen(c_op.vlen),
        .zero_too(c_op.fate == pkg::ZEROES), .idle(idle[g]),
        .row_valid(eats[g]), .row_ready(cell_row_ready[g]), .row,
        .ask_valid(ask_valid[g]), .ask_ready(ask_ready[g]), .ask_first(ask_first[g]),
        .ask_single(ask_single[g]), .ask_lane(ask_lane[2*g +: 2]), .ask_state(ask_state[64*g +: 64]),
        .ask_a(ask_a[128*g +: 128]), .ask_b(ask_b[128*g +: 128]),
        .reply_valid(reply_valid && reply_cell == CL'(g)), .reply_lane, .reply,
        .done(done[g]), .taken(taken[g]), .weight(weight[g]), .weight_zeroed(weight_zeroed[g])
      );
    end
  endgenerate

  // Stripes go before all else, as they must keep up with their value; then the lower cell. None starves: at
  // most every other cycle has a stripe's ask, and a cell that was served waits for its product.
  logic e0, single0, e1, single1, e2, single2, e3, single3, e4, single4, e5;
  logic [CL-1:0] pick, cell0, cell1, cell2, cell3, cell4, cell5;
  logic [1:0] lane0, lane1, lane2, lane3, lane4, lane5;
  logic [63:0] x0, y0, x3, y3;
  logic [127:0] b0, b1, b2, p1, p2, single_p3, single_p4;
  always_comb begin
    pick = '0;
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (ask_valid[i]) pick = CL'(i);
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (ask_valid[i] && ask_first[i]) pick = CL'(i);
    for (i = 0; i < CELLS; i = i + 1) ask_ready[i] = pick == CL'(i);
  end
  logic [63:0] pick_state;
  logic [127:0] pick_a, pick_b;
  always_comb begin
    pick_state = ask_state[63:0];
    pick_a = ask_a[127:0];
    pick_b = ask_b[127:0];
    for (i = 1; i < CELLS; i = i + 1)
      if (pick == CL'(i)) begin
        pick_state = ask_state[64*i +: 64];
        pick_a = ask_a[128*i +: 128];
        pick_b = ask_b[128*i +: 128];
      end
  end
  mul first (.clk, .a(x0), .b(y0), .product(p1));
  mul second (.clk, .a(x3), .b(y3), .product(p2));
  assign x3 = p1[63:0] ^ b2[63:0];
  assign y3 = p1[127:64] ^ b2[127:64];
  always_ff @(posedge clk) begin
    // Factors, first product (two cycles), second product (two cycles), fold.
    e0 <= |ask_valid && !rst;
    {single0, cell0, lane0} <= {ask_single[pick], pick, ask_lane[2*32'(pick) +: 2]};
    x0 <= pick_state ^ pick_a[63:0];
    y0 <= K0 ^ pick_a[127:64];
    b0 <= pick_b;
    {e1, e2, e3, e4} <= {e0, e1, e2, e3} & {4{!rst}};
    {single1, single2, single3, single4} <= {single0, single1, single2, single3};
    {cell1, cell2, cell3, cell4} <= {cell0, cell1, cell2, cell3};
    {lane1, lane2, lane3, lane4} <= {lane0, lane1, lane2, lane3};
    {b1, b2} <= {b0, b1};
    {single_p3, single_p4} <= {p1, single_p3};
    e5 <= e4 && !rst;
    {cell5, lane5} <= {cell4, lane4};
    reply <= single4 ? single_p4[63:0] ^ single_p4[127:64] : p2[63:0] ^ p2[127:64];
  end
  assign reply_valid = e5;
  assign reply_cell = cell5;
  assign reply_lane = lane5;

  logic unused;
  assign unused = ^{b_high[63:32], note};
endmodule
