// Properties of skid: words leave in order, each once, what is offered stays, and at most two are inside.
module skid_proof (
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
  skid #(.WIDTH(4)) dut (
    .clk, .rst, .in_valid, .in_ready, .in_word, .out_valid, .out_ready, .out_word
  );

  (* anyconst *) logic [4:0] which;
  logic [4:0] came, left;
  logic [3:0] kept, offered;
  logic held;
  always_ff @(posedge clk) begin
    if (rst) begin
      came <= '0;
      left <= '0;
      held <= 1'b0;
    end else begin
      if (in_valid && in_ready) begin
        came <= came + 1'b1;
        if (came == which) kept <= in_word;
      end
      if (out_valid && out_ready) left <= left + 1'b1;
      held <= out_valid && !out_ready;
    end
    offered <= out_word;
  end
  logic [4:0] stock;
  assign stock = came - left;
  always_comb begin
    if (started) begin
      assert (stock <= 5'd2);
      assert (out_valid == (stock != '0));
      if (held) assert (out_valid && out_word == offered);
      if (out_valid && left == which) assert (out_word == kept);
    end
  end
endmodule
