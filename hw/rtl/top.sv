// Units behind AXI: registers and a unit for each, side by side. Ports of unit u are bits or words u of each bus.
//
// Keeps: units share nothing but clock and reset.
module top #(
  parameter int W = 16,
  parameter int N = 4,
  parameter int UNITS = 1,
  parameter logic [63:0] BUILD = 64'd0
) (
  input  logic                 clk,
  input  logic                 rst,
  // AXI4-Lite to the registers.
  input  logic [UNITS-1:0]     s_aw_valid,
  output logic [UNITS-1:0]     s_aw_ready,
  input  logic [12*UNITS-1:0]  s_aw_address,
  input  logic [UNITS-1:0]     s_w_valid,
  output logic [UNITS-1:0]     s_w_ready,
  input  logic [32*UNITS-1:0]  s_w_word,
  output logic [UNITS-1:0]     s_b_valid,
  input  logic [UNITS-1:0]     s_b_ready,
  input  logic [UNITS-1:0]     s_ar_valid,
  output logic [UNITS-1:0]     s_ar_ready,
  input  logic [12*UNITS-1:0]  s_ar_address,
  output logic [UNITS-1:0]     s_r_valid,
  input  logic [UNITS-1:0]     s_r_ready,
  output logic [32*UNITS-1:0]  s_r_word,
  output logic [UNITS-1:0]     irq,
  // AXI4 to the card's memory: 64 bytes wide, bursts INCR, one id.
  output logic [UNITS-1:0]     ar_valid,
  input  logic [UNITS-1:0]     ar_ready,
  output logic [64*UNITS-1:0]  ar_address,
  output logic [8*UNITS-1:0]   ar_len,
  input  logic [UNITS-1:0]     r_valid,
  output logic [UNITS-1:0]     r_ready,
  input  logic [512*UNITS-1:0] r_beat,
  input  logic [2*UNITS-1:0]   r_resp,
  input  logic [UNITS-1:0]     r_last,
  output logic [UNITS-1:0]     aw_valid,
  input  logic [UNITS-1:0]     aw_ready,
  output logic [64*UNITS-1:0]  aw_address,
  output logic [8*UNITS-1:0]   aw_len,
  output logic [UNITS-1:0]     w_valid,
  input  logic [UNITS-1:0]     w_ready,
  output logic [512*UNITS-1:0] w_beat,
  output logic [UNITS-1:0]     w_last,
  input  logic [UNITS-1:0]     b_valid,
  output logic [UNITS-1:0]     b_ready,
  input  logic [2*UNITS-1:0]   b_resp
);
  genvar u;
  generate
    for (u = 0; u < UNITS; u = u + 1) begin : g_unit
      logic command_valid, command_done, command_silent, abort, reset_wanted, reset_done;
      logic beat_read, beat_written;
      logic [255:0] command;
      logic [7:0] command_code;
      csr #(.W(W), .N(N), .BUILD(BUILD)) csr (
        .clk, .rst, .s_aw_valid(s_aw_valid[u]), .s_aw_ready(s_aw_ready[u]),
        .s_aw_address(s_aw_address[12*u +: 12]), .s_w_valid(s_w_valid[u]), .s_w_ready(s_w_ready[u]),
        .s_w_word(s_w_word[32*u +: 32]), .s_b_valid(s_b_valid[u]), .s_b_ready(s_b_ready[u]),
        .s_ar_valid(s_ar_valid[u]), .s_ar_ready(s_ar_ready[u]),
        .s_ar_address(s_ar_address[12*u +: 12]), .s_r_valid(s_r_valid[u]), .s_r_ready(s_r_ready[u]),
        .s_r_word(s_r_word[32*u +: 32]), .irq(irq[u]), .command_valid, .command,
        .command_done, .command_code, .command_silent, .abort, .reset_wanted, .reset_done,
        .beat_read, .beat_written
      );
      unit #(.W(W), .N(N)) unit (
        .clk, .rst, .command_valid, .command, .command_done, .command_code, .command_silent, .abort,
        .reset_wanted, .reset_done, .beat_read, .beat_written,
        .ar_valid(ar_valid[u]), .ar_ready(ar_ready[u]), .ar_address(ar_address[64*u +: 64]),
        .ar_len(ar_len[8*u +: 8]), .r_valid(r_valid[u]), .r_ready(r_ready[u]),
        .r_beat(r_beat[512*u +: 512]), .r_resp(r_resp[2*u +: 2]), .r_last(r_last[u]),
        .aw_valid(aw_valid[u]), .aw_ready(aw_ready[u]), .aw_address(aw_address[64*u +: 64]),
        .aw_len(aw_len[8*u +: 8]), .w_valid(w_valid[u]), .w_ready(w_ready[u]),
        .w_beat(w_beat[512*u +: 512]), .w_last(w_last[u]), .b_valid(b_valid[u]),
        .b_ready(b_ready[u]), .b_resp(b_resp[2*u +: 2])
      );
    end
  endgenerate
endmodule
