// Merges the N data ways and then the side way: N - 1 nodes as a binary tree, and the root node.
//
// Keeps: the order of R7. Lower ways are inputs A of their nodes, so they win ties; the side way is last.
module tree #(
  parameter int W = 16,
  parameter int N = 4,
  parameter int CW = $clog2(W + 2),
  parameter int BW = 1 + 8*W + CW + 64 + pkg::VLEN + 5
) (
  input  logic                  clk,
  input  logic                  rst,
  input  logic [N:0]            in_valid,     // N is the side way
  output logic [N:0]            in_ready,
  input  logic [BW*(N+1)-1:0]   in_beat,
  output logic                  out_valid,
  input  logic                  out_ready,
  output logic [BW-1:0]         out_beat
);
  // Streams 1 to 2N - 1 as a heap: node k merges streams 2k and 2k + 1 into k; the ways are N to 2N - 1.
  logic [2*N-1:0] valid, ready;
  logic [BW*2*N-1:0] beat;
  genvar g;
  generate
    for (g = 0; g < N; g = g + 1) begin : g_leaf
      assign valid[N+g] = in_valid[g];
      assign in_ready[g] = ready[N+g];
      assign beat[BW*(N+g) +: BW] = in_beat[BW*g +: BW];
    end
    for (g = 1; g < N; g = g + 1) begin : g_node
      node #(.W(W)) n (
        .clk, .rst,
        .a_valid(valid[2*g]), .a_ready(ready[2*g]), .a_beat(beat[BW*2*g +: BW]),
        .b_valid(valid[2*g+1]), .b_ready(ready[2*g+1]), .b_beat(beat[BW*(2*g+1) +: BW]),
        .out_valid(valid[g]), .out_ready(ready[g]), .out_beat(beat[BW*g +: BW])
      );
    end
  endgenerate
  assign valid[0] = 1'b0;
  assign ready[0] = 1'b0;
  assign beat[BW-1:0] = '0;
  node #(.W(W)) root (
    .clk, .rst,
    .a_valid(valid[1]), .a_ready(ready[1]), .a_beat(beat[BW +: BW]),
    .b_valid(in_valid[N]), .b_ready(in_ready[N]), .b_beat(in_beat[BW*N +: BW]),
    .out_valid, .out_ready, .out_beat
  );
  logic unused;
  assign unused = ^{valid[0], ready[0], beat[BW-1:0]};
endmodule
