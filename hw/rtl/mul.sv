// 64 x 64 -> 128 bits in two cycles, one product a cycle. With LOW only the lower half of the product is made.
//
// Twelve products of 26 x 17 bits, what a multiplier of the card takes, stand behind the first register, and their sum
// behind the second. So no adder lies in the cycle of a multiplier.
module mul #(
  parameter bit LOW = 0
) (
  input  logic         clk,
  input  logic [63:0]  a,
  input  logic [63:0]  b,
  output logic [127:0] product
);
  localparam int BITS = LOW ? 64 : 128;
  logic [77:0] wide_a;
  logic [67:0] wide_b;
  logic [12*43-1:0] part;
  logic [BITS-1:0] sum;
  integer i, j;
  assign wide_a = {14'd0, a};
  assign wide_b = {4'd0, b};
  always_ff @(posedge clk) begin
    for (i = 0; i < 3; i = i + 1)
      for (j = 0; j < 4; j = j + 1)
        part[43*(4*i+j) +: 43] <= 43'(wide_a[26*i +: 26]) * 43'(wide_b[17*j +: 17]);
    product <= 128'(sum);
  end
  always_comb begin
    sum = '0;
    for (i = 0; i < 3; i = i + 1)
      for (j = 0; j < 4; j = j + 1)
        if (26*i + 17*j < BITS) sum = sum + (BITS'(part[43*(4*i+j) +: 43]) << (26*i + 17*j));
  end
endmodule
