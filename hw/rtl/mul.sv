// 64 x 64 -> 128 bits in two cycles, one product a cycle.
module mul (
  input  logic         clk,
  input  logic [63:0]  a,
  input  logic [63:0]  b,
  output logic [127:0] product
);
  // Four partial products behind the first register, their sum behind the second.
  logic [63:0] ll, lh, hl, hh;
  always_ff @(posedge clk) begin
    ll <= 64'(a[31:0]) * 64'(b[31:0]);
    lh <= 64'(a[31:0]) * 64'(b[63:32]);
    hl <= 64'(a[63:32]) * 64'(b[31:0]);
    hh <= 64'(a[63:32]) * 64'(b[63:32]);
    product <= {hh, ll} + {32'd0, lh, 32'd0} + {32'd0, hl, 32'd0};
  end
endmodule
