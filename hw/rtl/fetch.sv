// Reads the entry areas of all ways over one AXI4 read port of 64 bytes.
//
// Keeps: at most 2^LOG bursts are under way, which is what hides the time memory takes to answer; beats come back in the order asked for (one AXI id), so a queue of
// what was asked says whose they are. Every area's F64 is compared. After `halt` nothing more is asked for, and
// `idle` says when memory owes nothing.
// Sums header and tables, too, which come while no area does.
// Leaves to others: which bursts (fetch_way), header and tables (head).
module fetch #(
  parameter int N = 4,
  parameter int LOG = 3
) (
  input  logic                   clk,
  input  logic                   rst,
  input  logic                   halt,
  output logic                   idle,
  input  logic                   begin_set,
  input  logic [63:0]            base,
  input  logic [31:0]            slot_bytes,
  input  logic [31:0]            tables_end,
  input  logic [32*(N+1)-1:0]    first,       // way N is the side way
  input  logic [32*(N+1)-1:0]    count,
  // AXI4 read port.
  output logic                   ar_valid,
  input  logic                   ar_ready,
  output logic [63:0]            ar_address,
  output logic [7:0]             ar_len,
  input  logic                   r_valid,
  input  logic [511:0]           r_beat,
  input  logic                   r_bad,
  // Beats of header and tables on the same bus, and their F64. The last 16 bytes of the first one count as zero.
  input  logic                   head_in,
  input  logic                   head_first,
  input  logic                   head_last,
  output logic                   head_sum_valid,
  output logic [63:0]            sum_a,
  output logic [63:0]            sum_b,
  // To the decoders.
  output logic [N:0]             area_valid,
  input  logic [N:0]             area_ready,
  output logic [(N+1)*pkg::AREA_BITS-1:0] area,
  output logic [N:0]             word_valid,
  input  logic [N:0]             word_ready,
  output logic [(N+1)*512-1:0]   word,
  output logic                   fault_valid,
  output pkg::fault_t            fault
);
  localparam int AREA = pkg::AREA_BITS;
  localparam logic [4:0] HEAD = 5'd31;        // the sum of header and tables, among those of ways
  genvar g;

  logic [N:0] want_valid, want_ready, want_table, want_high, want_first, want_last;
  logic [64*(N+1)-1:0] want_address;
  logic [6*(N+1)-1:0] want_beats;
  logic [32*(N+1)-1:0] index;
  logic [128*(N+1)-1:0] expected;
  logic [N:0] got_table, got_data, bad_place;
  logic [255:0] got_row;
  logic [511:0] got_beat;

  generate
    for (g = 0; g <= N; g = g + 1) begin : g_way
      fetch_way way (
        .clk, .rst, .begin_set, .base, .slot_bytes, .tables_end,
        .first(first[32*g +: 32]), .count(count[32*g +: 32]),
        .want_valid(want_valid[g]), .want_ready(want_ready[g]), .want_table(want_table[g]),
        .want_high(want_high[g]), .want_address(want_address[64*g +: 64]), .want_beats(want_beats[6*g +: 6]),
        .want_first(want_first[g]), .want_last(want_last[g]), .index(index[32*g +: 32]),
        .expected(expected[128*g +: 128]), .got_table(got_table[g]), .got_row, .got_data(got_data[g]), .got_beat,
        .area_valid(area_valid[g]), .area_ready(area_ready[g]), .area(area[AREA*g +: AREA]),
        .word_valid(word_valid[g]), .word_ready(word_ready[g]), .word(word[512*g +: 512]),
        .bad_place(bad_place[g])
      );
    end
  endgenerate

  // Whose turn: the first way at or behind `turn` that wants something.
  logic [4:0] turn, pick;
  logic picked;
  integer i;
  always_comb begin
    pick = '0;
    picked = 1'b0;
    for (i = N; i >= 0; i = i - 1)
      if (want_valid[i]) begin
        pick = 5'(i);
        picked = 1'b1;
      end
    for (i = N; i >= 0; i = i - 1)
      if (want_valid[i] && 5'(i) >= turn) pick = 5'(i);
  end

  // What is under way, oldest first: way, kind, whether it begins or ends an area, beats.
  logic log_in_ready, log_valid, log_pop, grant;
  logic [14:0] log_in, log_out;
  logic [LOG:0] log_count;
  logic [31:0] pick_index;
  logic [127:0] pick_expected;
  assign grant = picked && !ar_valid && log_in_ready && !halt && !rst;
  always_comb begin
    log_in = '0;
    {pick_index, pick_expected} = '0;
    for (i = 0; i <= N; i = i + 1)
      if (pick == 5'(i)) begin
        log_in = {5'(i), want_table[i], want_high[i], want_first[i], want_last[i], want_beats[6*i +: 6]};
        {pick_index, pick_expected} = {index[32*i +: 32], expected[128*i +: 128]};
      end
  end
  fifo #(.WIDTH(15), .LG(LOG)) under_way (
    .clk, .rst, .in_valid(grant), .in_ready(log_in_ready), .in_word(log_in),
    .out_valid(log_valid), .out_ready(log_pop), .out_word(log_out), .count(log_count)
  );
  always_comb
    for (i = 0; i <= N; i = i + 1) want_ready[i] = grant && pick == 5'(i);

  always_ff @(posedge clk) begin
    if (rst) begin
      ar_valid <= 1'b0;
      turn <= '0;
    end else begin
      if (ar_ready) ar_valid <= 1'b0;
      if (grant) begin
        ar_valid <= 1'b1;
        turn <= pick == 5'(N) ? '0 : pick + 1'b1;
        for (i = 0; i <= N; i = i + 1)
          if (pick == 5'(i)) begin
            ar_address <= want_address[64*i +: 64];
            ar_len <= 8'(want_beats[6*i +: 6]) - 8'd1;
          end
      end
    end
  end

  // What comes back is registered once, then dealt out.
  logic [5:0] taken;
  logic final_beat, begins, ends, g_valid, g_table, g_high, g_first, g_last;
  logic g_head, g_head_first, g_head_last;
  logic [4:0] g_owner;
  assign final_beat = taken + 1'b1 == log_out[5:0];
  assign log_pop = r_valid && final_beat;
  assign begins = log_out[7] && taken == '0;
  assign ends = log_out[6] && final_beat;
  always_ff @(posedge clk) begin
    if (rst) begin
      taken <= '0;
      g_valid <= 1'b0;
    end else begin
      g_valid <= r_valid && !halt;
      if (r_valid) taken <= final_beat ? '0 : taken + 1'b1;
    end
    {g_owner, g_table, g_high, g_first, g_last} <= {log_out[14:8], begins, ends};
    {g_head, g_head_first, g_head_last} <= {head_in && !rst, head_first, head_last};
    got_beat <= r_beat;
    if (head_in && head_first) got_beat[511:384] <= '0;
  end
  assign got_row = g_high ? got_beat[511:256] : got_beat[255:0];
  always_comb
    for (i = 0; i <= N; i = i + 1) begin
      got_table[i] = g_valid && g_table && g_owner == 5'(i);
      got_data[i] = g_valid && !g_table && g_owner == 5'(i);
    end

  // ---- F64 of areas: they end in the order in which their last bursts were asked for ----
  // At most sixteen of these are under way, and eight ends of areas in the sums: the queue always has room.
  logic summing, sum_valid, due_ready, due_valid, bus_bad, bad_sum;
  logic [4:0] sum_way, bad_way;
  logic [5:0] due_count;
  logic [31:0] due_index, bad_index;
  logic any_sum_valid;
  logic [127:0] due_sum;
  f64 sums (
    .clk, .rst, .in_valid(g_head || (g_valid && !g_table)), .in_first(g_head ? g_head_first : g_first),
    .in_last(g_head ? g_head_last : g_last), .in_channel(g_head ? HEAD : g_owner), .in_beat(got_beat),
    .out_valid(any_sum_valid), .out_channel(sum_way), .out_a(sum_a), .out_b(sum_b), .busy(summing)
  );
  assign head_sum_valid = any_sum_valid && sum_way == HEAD;
  assign sum_valid = any_sum_valid && sum_way != HEAD;
  assign idle = !ar_valid && !log_valid && !g_valid && !summing;
  fifo #(.WIDTH(160), .LG(5)) due (
    .clk, .rst, .in_valid(grant && !log_in[9] && log_in[6]), .in_ready(due_ready), .in_word({pick_index, pick_expected}),
    .out_valid(due_valid), .out_ready(sum_valid), .out_word({due_index, due_sum}), .count(due_count)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      {bus_bad, bad_sum} <= '0;
    end else begin
      if (r_valid && r_bad) bus_bad <= 1'b1;
      if (sum_valid && !bad_sum) begin
        bad_sum <= due_sum != {sum_b, sum_a};
        {bad_way, bad_index} <= {sum_way, due_index};
      end
    end
    fault_valid <= !rst && (bus_bad || bad_sum || |bad_place);
    fault.code <= bus_bad || bad_sum ? pkg::LINK : pkg::HEADER;
    fault.way <= 8'd255;
    fault.descriptor <= '1;
    fault.entry <= '1;
    for (i = N; i >= 0; i = i - 1)
      if (bad_sum ? bad_way == 5'(i) : bad_place[i]) begin
        fault.way <= i == N ? 8'(pkg::SIDE) : 8'(i);
        fault.descriptor <= bad_sum ? bad_index : index[32*i +: 32] + 32'd1;
      end
  end

  logic unused;
  assign unused = ^{log_count, due_ready, due_valid, due_count};
endmodule
