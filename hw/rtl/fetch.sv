// Reads the entry areas of all ways over one AXI4 read port of 64 bytes.
//
// Keeps: at most eight bursts are under way; beats come back in the order asked for (one AXI id), so a queue of
// what was asked says whose they are. Every area's F64 is compared. After `halt` nothing more is asked for, and
// `idle` says when memory owes nothing.
// Leaves to others: which bursts (fetch_way), header and tables (head).
module fetch #(
  parameter int N = 4
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
  genvar g;

  logic [N:0] want_valid, want_ready, want_table, want_first, want_last;
  logic [64*(N+1)-1:0] want_address;
  logic [6*(N+1)-1:0] want_beats;
  logic [N:0] got_table, got_data, sum_here, bad_place, bad_sum;
  logic [32*(N+1)-1:0] fault_index;
  logic [511:0] got_beat;
  logic sum_valid;
  logic [4:0] sum_way;
  logic [63:0] sum_a, sum_b;

  generate
    for (g = 0; g <= N; g = g + 1) begin : g_way
      fetch_way way (
        .clk, .rst, .begin_set, .base, .slot_bytes, .tables_end,
        .first(first[32*g +: 32]), .count(count[32*g +: 32]),
        .want_valid(want_valid[g]), .want_ready(want_ready[g]), .want_table(want_table[g]),
        .want_address(want_address[64*g +: 64]), .want_beats(want_beats[6*g +: 6]),
        .want_first(want_first[g]), .want_last(want_last[g]),
        .got_table(got_table[g]), .got_data(got_data[g]), .got_beat,
        .sum_valid(sum_here[g]), .sum_a, .sum_b,
        .area_valid(area_valid[g]), .area_ready(area_ready[g]), .area(area[AREA*g +: AREA]),
        .word_valid(word_valid[g]), .word_ready(word_ready[g]), .word(word[512*g +: 512]),
        .bad_place(bad_place[g]), .bad_sum(bad_sum[g]), .fault_index(fault_index[32*g +: 32])
      );
      assign sum_here[g] = sum_valid && sum_way == 5'(g);
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

  // What is under way, oldest first: way, kind, beats and whether they begin or end an area.
  logic log_in_ready, log_valid, log_pop, grant;
  logic [13:0] log_in, log_out;
  logic [3:0] log_count;
  assign grant = picked && !ar_valid && log_in_ready && !halt && !rst;
  always_comb begin
    log_in = '0;
    for (i = 0; i <= N; i = i + 1)
      if (pick == 5'(i))
        log_in = {5'(i), want_table[i], want_first[i], want_last[i], want_beats[6*i +: 6]};
  end
  fifo #(.WIDTH(14), .LG(3)) under_way (
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
  logic final_beat, begins, ends, g_valid, g_table, g_first, g_last;
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
    {g_owner, g_table, g_first, g_last} <= {log_out[13:9], log_out[8], begins, ends};
    got_beat <= r_beat;
  end
  always_comb
    for (i = 0; i <= N; i = i + 1) begin
      got_table[i] = g_valid && g_table && g_owner == 5'(i);
      got_data[i] = g_valid && !g_table && g_owner == 5'(i);
    end

  logic summing;
  f64 sums (
    .clk, .rst, .in_valid(g_valid && !g_table), .in_first(g_first), .in_last(g_last),
    .in_channel(g_owner), .in_beat(got_beat),
    .out_valid(sum_valid), .out_channel(sum_way), .out_a(sum_a), .out_b(sum_b), .busy(summing)
  );
  assign idle = !ar_valid && !log_valid && !g_valid && !summing;

  logic bus_bad;
  always_ff @(posedge clk) begin
    if (rst) bus_bad <= 1'b0;
    else if (r_valid && r_bad) bus_bad <= 1'b1;
    fault_valid <= !rst && (bus_bad || |bad_sum || |bad_place);
    fault.code <= bus_bad || |bad_sum ? pkg::LINK : pkg::HEADER;
    fault.way <= 8'd255;
    fault.descriptor <= '1;
    fault.entry <= '1;
    for (i = N; i >= 0; i = i - 1)
      if (bad_sum[i] || bad_place[i]) begin
        fault.way <= i == N ? 8'(pkg::SIDE) : 8'(i);
        fault.descriptor <= fault_index[32*i +: 32];
      end
  end

  logic unused;
  assign unused = ^log_count;
endmodule
