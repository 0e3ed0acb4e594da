// Weighs entries: a ring of rows that holds their values, cells that step through them, and two multipliers in a row for
// a round of 32 bytes a cycle. A third one joins lanes and turns contents into weights.
//
// A round takes its rows out of the ring, turns them to their place, and meets the state that an earlier round left. A round
// costs four cycles from state to state, so four lanes keep it busy with one value; cells bring rounds of several
// values together where each waits for the one before.
//
// Keeps: weights leave in the order of the entries. A row of the ring is not overwritten before it has been read for the last time.
module weigh_engine #(
  parameter int W = 16,
  parameter int CELLS = 6
) (
  input  logic           clk,
  input  logic           rst,
  // Entries. `seed` is the key's hash, mixed with the value's length.
  input  logic           entry_valid,
  output logic           entry_ready,
  input  logic [63:0]    seed,
  input  logic [63:0]    tag,
  input  logic [27:0]    vlen,
  input  logic           zero_too,       // its weight with the number 0 is asked for as well
  // Their values in the same order, each from a word of its own.
  input  logic           word_valid,
  output logic           word_ready,
  input  logic [8*W-1:0] word,
  // The weights.
  output logic           out_valid,
  input  logic           out_ready,
  output logic [63:0]    out_weight,
  output logic [63:0]    out_zeroed
);
  localparam logic [63:0] K0 = 64'ha076_1d64_78bd_642f;
  localparam logic [63:0] K1 = 64'he703_7ed1_a0b4_28db;
  localparam int LW = $clog2(W);
  localparam int PER = W / 16;             // rows of a word
  localparam int BANKS = PER > 2 ? PER : 2;
  localparam int BL = $clog2(BANKS);
  localparam int DL = 9;                   // lg of a bank's rows
  localparam int RP = BL + DL + 1;         // a place, with a bit for how often the ring went around
  localparam int CL = $clog2(CELLS);
  localparam int AW = 30 - LW;
  integer i, k;
  genvar g;

  // ---- the ring ----
  logic [RP-1:0] arrived, freed, begins_at, ends_at;
  logic put, room;
  logic i_valid;
  logic [RP-1:0] i_row, i_end_row;
  logic [128*BANKS-1:0] rows, end_rows;    // of the round in stage r
  assign word_ready = room;
  assign put = word_valid && room;
  generate
    for (g = 0; g < BANKS; g = g + 1) begin : g_bank
      (* ram_style = "block" *) logic [127:0] mem [1 << DL];
      logic put_here;
      logic [127:0] put_row;
      logic [DL-1:0] at, end_at;
      if (PER == 1) begin : g_one
        assign put_here = put && arrived[0] == 1'(g);
        assign put_row = word[127:0];
      end else begin : g_all
        assign put_here = put;
        assign put_row = word[128*g +: 128];
      end
      // The row asked for, or the next one that is in this bank.
      assign at = i_row[BL +: DL] + DL'((BL+1)'(g) < {1'b0, i_row[BL-1:0]});
      assign end_at = i_end_row[BL +: DL] + DL'((BL+1)'(g) < {1'b0, i_end_row[BL-1:0]});
      always_ff @(posedge clk) begin
        if (put_here) mem[arrived[BL +: DL]] <= put_row;
        rows[128*g +: 128] <= mem[at];
        end_rows[128*g +: 128] <= mem[end_at];
      end
    end
  endgenerate

  // ---- entries begin, each in a cell of its own; cells take turns, so that `giver` or the next one behind it has the oldest ----
  logic [CELLS-1:0] idle, begin_entry, ask, taken, striped, firsts, lasts, join_ask, join_taken, joined;
  logic [CL-1:0] giver;
  logic [3:0] next_entry, out_entry, free_entry;
  logic [4:0] held_entries;                      // entries that have not left
  logic [CELLS-1:0] behind;                      // cells from `giver` on
  logic begins, join_made;
  logic [AW-1:0] ahead, words;             // words that came, less those of entries that began: signed; words of a value
  logic [3:0] join_made_of;
  logic [63:0] join_seed;
  always_comb
    for (i = 0; i < CELLS; i = i + 1) begin_entry[i] = begins && giver == CL'(i);
  // Seeds are kept by entry, as a cell may begin the next one before its last round has met its state. A join writes one, too.
  // An entry begins when all values before its own have come, so a cell can tell by places what is here.
  assign entry_ready = idle[giver] && !held_entries[4] && !join_made && !ahead[AW-1];
  assign begins = entry_valid && entry_ready;
  assign words = (AW)'(vlen[27:LW]) + AW'(|vlen[LW-1:0]);
  assign ends_at = begins_at + RP'(words) * RP'(PER);

  (* ram_style = "distributed" *) logic [63:0] seeds [16];
  (* ram_style = "distributed" *) logic [64:0] tags [16];
  (* ram_style = "distributed" *) logic [RP-1:0] ends [16];
  always_ff @(posedge clk) begin
    if (rst) begin
      {next_entry, held_entries} <= '0;
      ahead <= '0;
      begins_at <= '0;
      giver <= '0;
      behind <= '1;
    end else begin
      if (begins) begin
        giver <= giver == CL'(CELLS - 1) ? '0 : giver + 1'b1;
        behind <= giver == CL'(CELLS - 1) ? '1 : {behind[CELLS-2:0], 1'b0};
        next_entry <= next_entry + 1'b1;
        begins_at <= ends_at;
      end
      ahead <= ahead + AW'(put) - (begins ? words : AW'(0));
      held_entries <= held_entries + 5'(begins) - 5'(out_valid && out_ready);
    end
    if (begins || join_made) seeds[join_made ? join_made_of : next_entry] <= join_made ? join_seed : seed;
    if (begins) begin
      tags[next_entry] <= {zero_too, tag};
      ends[next_entry] <= ends_at;
    end
  end

  // ---- cells, and whose round is next ----
  logic [3*CELLS-1:0] kinds;
  logic [RP*CELLS-1:0] row_of, end_row_of;
  logic [2*CELLS-1:0] lanes_of;
  logic [4*CELLS-1:0] lengths, entries;
  generate
    for (g = 0; g < CELLS; g = g + 1) begin : g_cell
      pkg::weigh_kind_e kind_here;
      assign kinds[3*g +: 3] = kind_here;
      weigh_cell #(.RP(RP)) one (
        .clk, .rst, .begin_entry(begin_entry[g]), .vlen, .start(begins_at), .number(next_entry),
        .idle(idle[g]), .arrived, .ask(ask[g]), .taken(taken[g]), .striped(striped[g]), .kind(kind_here),
        .row(row_of[RP*g +: RP]), .end_row(end_row_of[RP*g +: RP]), .lane(lanes_of[2*g +: 2]),
        .first(firsts[g]), .last(lasts[g]), .length(lengths[4*g +: 4]), .entry(entries[4*g +: 4]),
        .join_ask(join_ask[g]), .join_taken(join_taken[g]), .joined(joined[g])
      );
    end
  endgenerate
  // Stripes come last, as they find work again in every cycle, and of these the oldest value first: weights leave in order, so
  // all others would soon wait for it. The second half of a tail follows the first at once.
  logic [CL-1:0] pick, tail_of;
  logic tail_due;
  always_comb begin
    pick = '0;
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (ask[i]) pick = CL'(i);
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (ask[i] && behind[i]) pick = CL'(i);
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (ask[i] && !striped[i]) pick = CL'(i);
    if (tail_due) pick = tail_of;
    for (i = 0; i < CELLS; i = i + 1) taken[i] = ask[i] && pick == CL'(i);
  end
  logic [CL-1:0] i_cell;
  logic [2:0] i_kind;
  logic [1:0] i_lane;
  logic i_first, i_last;
  logic [3:0] i_length, i_entry;
  always_ff @(posedge clk) begin
    i_valid <= |ask && !rst;
    i_cell <= pick;
    {i_kind, i_row, i_end_row, i_lane, i_first, i_last, i_length, i_entry} <= '0;
    for (i = 0; i < CELLS; i = i + 1)
      if (pick == CL'(i))
        {i_kind, i_row, i_end_row, i_lane, i_first, i_last, i_length, i_entry} <= {kinds[3*i +: 3],
            row_of[RP*i +: RP], end_row_of[RP*i +: RP], lanes_of[2*i +: 2], firsts[i], lasts[i],
            lengths[4*i +: 4], entries[4*i +: 4]};
    tail_due <= 1'b0;
    tail_of <= pick;
    for (i = 0; i < CELLS; i = i + 1)
      if (taken[i] && kinds[3*i +: 3] == pkg::TAIL_A) tail_due <= !rst;
  end

  // ---- what is free of the ring: values that were read, in order, and of a long one what lies behind it ----
  logic [15:0] was_read;
  logic frees;
  assign frees = was_read[free_entry];
  always_ff @(posedge clk) begin
    if (rst) begin
      {arrived, freed} <= '0;
      was_read <= '0;
      free_entry <= '0;
    end else begin
      if (put) arrived <= arrived + RP'(PER);
      if (i_valid && i_last) was_read[i_entry] <= 1'b1;
      if (frees) begin
        was_read[free_entry] <= 1'b0;
        free_entry <= free_entry + 1'b1;
        freed <= ends[free_entry];
      end else if (i_valid && i_lane == 2'd3 && !i_first && i_entry == free_entry) begin
        // The last 32 bytes of the value may begin two rows back.
        freed <= i_row - RP'(4);
      end
    end
    room <= (arrived - freed) <= RP'((1 << (RP - 1)) - 4 * PER);
  end

  // ---- stage r: the rows come; stage m: they are turned to their place ----
  logic r_valid, r_first, r_last, m_valid, m_first, m_last;
  logic [CL-1:0] r_cell, m_cell;
  logic [2:0] r_kind, m_kind;
  logic [1:0] r_lane, m_lane;
  logic [3:0] r_length, r_entry, m_length, m_entry;
  logic [BL-1:0] r_at, r_next, r_end_at, r_end_next;
  logic [127:0] row_a, row_b, circle, turned, m_a, m_b, m_end;
  logic [255:0] twice;
  always_ff @(posedge clk) begin
    r_valid <= i_valid && !rst;
    {r_first, r_last, r_cell, r_kind, r_lane, r_length, r_entry} <=
        {i_first, i_last, i_cell, i_kind, i_lane, i_length, i_entry};
    {r_at, r_next} <= {i_row[BL-1:0], i_row[BL-1:0] + 1'b1};
    {r_end_at, r_end_next} <= {i_end_row[BL-1:0], i_end_row[BL-1:0] + 1'b1};
  end
  // Lanes of `end_row` from the length's last four bits on, then those of the row behind it: sixteen bytes that end where
  // the value does, or a multiple of 16 before.
  assign twice = {circle, circle};
  assign turned = twice[8*32'(r_length) +: 128];
  always_comb begin
    {row_a, row_b, circle} = '0;
    for (k = 0; k < BANKS; k = k + 1) begin
      if (r_at == BL'(k)) row_a = rows[128*k +: 128];
      if (r_next == BL'(k)) row_b = rows[128*k +: 128];
      for (i = 0; i < 16; i = i + 1)
        if ((4'(i) >= r_length ? r_end_at : r_end_next) == BL'(k)) circle[8*i +: 8] = end_rows[128*k+8*i +: 8];
    end
  end
  always_ff @(posedge clk) begin
    m_valid <= r_valid && !rst;
    {m_first, m_last, m_cell, m_kind, m_lane, m_length, m_entry} <=
        {r_first, r_last, r_cell, r_kind, r_lane, r_length, r_entry};
    {m_a, m_b, m_end} <= {row_a, row_b, turned};
  end

  // ---- stage x: operands and state ----
  logic x_valid, x_single, x_last, x_follows;
  logic [CL-1:0] x_cell;
  logic [1:0] x_lane;
  logic [3:0] x_entry;
  logic [127:0] x_a, x_b, held_end;
  logic [63:0] x_state, short_low, short_high, lane_key;
  // Stages 1 to 4 of the products. What leaves stage 4 is the state.
  logic [3:0] v, lasts_on, singles;
  logic [4*CL-1:0] cells;
  logic [7:0] lanes;
  logic [15:0] numbers;
  logic [63:0] state;
  (* ram_style = "distributed" *) logic [63:0] states [4 << CL];
  always_comb begin
    short_low = m_a[63:0];
    short_high = m_end[127:64];
    if (m_length < 4'd8) begin
      short_low = {32'd0, m_a[31:0]};
      short_high = {32'd0, m_end[127:96]};
    end
    if (m_length < 4'd4) begin
      short_high = '0;
      case (m_length[1:0])
        2'd0: short_low = '0;
        2'd1: short_low = {56'd0, m_a[7:0]};
        2'd2: short_low = {48'd0, m_a[7:0], m_a[15:8]};
        default: short_low = {40'd0, m_a[7:0], m_a[15:8], m_a[23:16]};
      endcase
    end
    lane_key = (m_lane[0] ? K0 : 64'd0) ^ (m_lane[1] ? K1 : 64'd0);
  end
  always_ff @(posedge clk) begin
    x_valid <= m_valid && m_kind != pkg::TAIL_A && !rst;
    {x_last, x_cell, x_lane, x_entry} <= {m_last, m_cell, m_lane, m_entry};
    x_single <= m_kind == pkg::SHORT;
    held_end <= m_end;
    x_a <= m_kind == pkg::TAIL_B ? held_end : m_a;
    if (m_kind == pkg::SHORT) x_a <= {short_high, short_low};
    x_b <= m_kind == pkg::PAIR ? m_b : m_end;
    // The state stands in memory, or is what leaves in this cycle, or what will leave in the next.
    x_follows <= !m_first && v[2] && cells[2*CL +: CL] == m_cell && lanes[5:4] == m_lane;
    if (m_first) x_state <= seeds[m_entry] ^ lane_key;
    else if (v[3] && cells[3*CL +: CL] == m_cell && lanes[7:6] == m_lane) x_state <= state;
    else x_state <= states[{m_cell, m_lane}];
  end

  // ---- two products in a row ----
  // A short value has only one: its factors go past the first multiplier.
  logic [63:0] x1, y1, x2, y2;
  logic [127:0] b_1, b_2, single_1, single_2, product_1, product_2;
  assign x1 = (x_follows ? state : x_state) ^ x_a[63:0];
  assign y1 = K0 ^ x_a[127:64];
  assign x2 = singles[1] ? single_2[63:0] : product_1[63:0] ^ b_2[63:0];
  assign y2 = singles[1] ? single_2[127:64] : product_1[127:64] ^ b_2[127:64];
  mul front (.clk, .a(x1), .b(y1), .product(product_1));
  mul back (.clk, .a(x2), .b(y2), .product(product_2));
  assign state = product_2[63:0] ^ product_2[127:64];
  always_ff @(posedge clk) begin
    v <= {v[2:0], x_valid} & {4{!rst}};
    {lasts_on, singles} <= {lasts_on[2:0], x_last, singles[2:0], x_single};
    {cells, lanes, numbers} <= {cells[3*CL-1:0], x_cell, lanes[5:0], x_lane, numbers[11:0], x_entry};
    {b_2, b_1} <= {b_1, x_b};
    {single_2, single_1} <= {single_1, y1, x1};
    if (v[3]) states[{cells[3*CL +: CL], lanes[7:6]}] <= state;
  end

  // ---- contents wait to become weights ----
  logic c_ready, c_valid, c_next;
  logic [63:0] content;
  logic [3:0] c_entry;
  logic [4:0] c_count;
  fifo #(.WIDTH(68), .LG(4)) contents (
    .clk, .rst, .in_valid(v[3] && lasts_on[3]), .in_ready(c_ready), .in_word({numbers[15:12], state}),
    .out_valid(c_valid), .out_ready(c_next), .out_word({c_entry, content}), .count(c_count)
  );

  // ---- the third multiplier: two products for a join, one or two for a weight ----
  typedef enum logic [1:0] {JOIN_A, JOIN_B, WEIGH, ZERO} job_e;
  job_e job, f0_job, f1_job, f2_job;
  logic go, join_b_due, zero_due, f0, f1, f2, f0_done, f1_done, f2_done;
  logic [CL-1:0] join_pick, join_of, f0_cell, f1_cell, f2_cell;
  logic [3:0] f0_entry, f1_entry, f2_entry;
  logic [64:0] c_tag;
  logic [255:0] four;                      // lanes of the cell that joins
  logic [63:0] fx, fy, fold, held_fold;
  logic [127:0] product_3;
  always_comb begin
    join_pick = '0;
    for (i = CELLS - 1; i >= 0; i = i - 1)
      if (join_ask[i]) join_pick = CL'(i);
    if (join_b_due) join_pick = join_of;
    job = zero_due ? ZERO : WEIGH;
    go = c_valid;
    if (join_b_due || |join_ask) begin
      job = join_b_due ? JOIN_B : JOIN_A;
      go = 1'b1;
    end
    for (i = 0; i < CELLS; i = i + 1) join_taken[i] = !join_b_due && join_ask[i] && join_pick == CL'(i);
    for (i = 0; i < 4; i = i + 1) four[64*i +: 64] = states[{join_pick, 2'(i)}];
  end
  assign c_tag = tags[c_entry];
  assign c_next = go && (job == ZERO || (job == WEIGH && !c_tag[64]));
  mul third (.clk, .a(fx), .b(fy), .product(product_3));
  assign fold = product_3[63:0] ^ product_3[127:64];
  always_ff @(posedge clk) begin
    if (rst) begin
      {join_b_due, zero_due} <= '0;
    end else begin
      join_b_due <= go && job == JOIN_A;
      if (go && job == WEIGH) zero_due <= c_tag[64];
      if (go && job == ZERO) zero_due <= 1'b0;
    end
    join_of <= join_pick;
    {f0, f1, f2} <= {go, f0, f1} & {3{!rst}};
    {f0_job, f1_job, f2_job} <= {job, f0_job, f1_job};
    {f0_done, f1_done, f2_done} <= {c_next, f0_done, f1_done};
    {f0_cell, f1_cell, f2_cell} <= {join_pick, f0_cell, f1_cell};
    {f0_entry, f1_entry, f2_entry} <= {job == JOIN_B ? entries[4*32'(join_pick) +: 4] : c_entry, f0_entry, f1_entry};
    case (job)
      JOIN_A: {fy, fx} <= {four[127:64], four[63:0] ^ K0};
      JOIN_B: {fy, fx} <= {four[255:192] ^ K1, four[191:128]};
      WEIGH: {fy, fx} <= {K1, content ^ c_tag[63:0]};
      default: {fy, fx} <= {K1, content ^ {56'd0, c_tag[7:0]}};
    endcase
    held_fold <= fold;
  end
  // The halves of a join come one behind the other.
  assign join_made = f2 && f2_job == JOIN_B;
  assign join_made_of = f2_entry;
  assign join_seed = held_fold ^ fold;
  always_comb
    for (i = 0; i < CELLS; i = i + 1) joined[i] = join_made && f2_cell == CL'(i);

  (* ram_style = "distributed" *) logic [63:0] weights [16];
  (* ram_style = "distributed" *) logic [63:0] zeroed [16];
  logic [15:0] done;
  always_ff @(posedge clk) begin
    if (rst) begin
      done <= '0;
      out_entry <= '0;
    end else begin
      if (f2 && f2_done) done[f2_entry] <= 1'b1;
      if (out_valid && out_ready) begin
        done[out_entry] <= 1'b0;
        out_entry <= out_entry + 1'b1;
      end
    end
    if (f2 && f2_job == WEIGH) weights[f2_entry] <= fold;
    if (f2 && f2_job == ZERO) zeroed[f2_entry] <= fold;
  end
  assign out_valid = done[out_entry];
  assign out_weight = weights[out_entry];
  assign out_zeroed = zeroed[out_entry];

  logic unused;
  assign unused = ^{c_ready, c_count, singles[3:2], i_end_row[RP-1]};
endmodule
