// Properties of fifo: words leave in the order in which they came, each once, and `count` is what is inside.
module fifo_proof #(
  parameter int LG = 2,
  parameter bit BLOCK = 0
) (
  input logic       clk,
  input logic       in_valid,
  input logic [3:0] in_word,
  input logic       out_ready
);
  logic started = 1'b0;
  logic rst;
  always_ff @(posedge clk) started <= 1'b1;
  assign rst = !started;

  logic in_ready, out_valid;
  logic [3:0] out_word;
  logic [LG:0] count;
  fifo #(.WIDTH(4), .LG(LG), .BLOCK(BLOCK)) dut (
    .clk, .rst, .in_valid, .in_ready, .in_word, .out_valid, .out_ready, .out_word, .count
  );

  // Any one word is followed from its coming to its leaving.
  (* anyconst *) logic [4:0] which;
  logic [4:0] came, left;
  logic [3:0] kept;
  always_ff @(posedge clk) begin
    if (rst) begin
      came <= '0;
      left <= '0;
    end else begin
      if (in_valid && in_ready) begin
        came <= came + 1'b1;
        if (came == which) kept <= in_word;
      end
      if (out_valid && out_ready) left <= left + 1'b1;
    end
  end
  always_comb begin
    if (started) begin
      assert (came - left == 5'(count));
      if (out_valid) assert (came != left);
      if (out_valid && left == which) assert (out_word == kept);
    end
  end
endmodule
