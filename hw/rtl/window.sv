// A memory of 2^LG bytes that is written in rows of W bytes and read in 16 bytes from any byte on, around its end.
//
// Keeps: what is written shows in the cycle after. Reads take no clock: the address and the bytes are of one cycle.
module window #(
  parameter int W = 16,
  parameter int LG = 8
) (
  input  logic                      clk,
  input  logic                      put,
  input  logic [LG-$clog2(W)-1:0]   put_row,
  input  logic [8*W-1:0]            put_bytes,
  input  logic [LG-1:0]             at,
  output logic [127:0]              bytes
);
  localparam int LW = $clog2(W);
  localparam int RW = LG - LW;
  logic [8*W-1:0] lanes;
  logic [16*W-1:0] twice;
  genvar b;
  generate
    for (b = 0; b < W; b = b + 1) begin : g_bank
      (* ram_style = "distributed" *) logic [7:0] mem [1 << RW];
      logic [RW-1:0] row;
      logic [LG-1:0] ahead;
      // Lanes below the first byte belong to the next row.
      assign ahead = at + LG'(W - 1 - b);
      assign row = ahead[LG-1:LW];
      assign lanes[8*b +: 8] = mem[row];
      logic unused_here;
      assign unused_here = ^ahead[LW-1:0];
      always_ff @(posedge clk) if (put) mem[put_row] <= put_bytes[8*b +: 8];
    end
  endgenerate
  assign twice = {lanes, lanes};
  assign bytes = twice[8*32'(at[LW-1:0]) +: 128];
endmodule
