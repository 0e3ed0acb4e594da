// A registered cut of a stream: neither valid nor ready passes through it within a cycle.
//
// Keeps: words leave in the order in which they came, each once, one a cycle if both sides keep up.
module skid #(
  parameter int WIDTH = 8
) (
  input  logic             clk,
  input  logic             rst,
  input  logic             in_valid,
  output logic             in_ready,
  input  logic [WIDTH-1:0] in_word,
  output logic             out_valid,
  input  logic             out_ready,
  output logic [WIDTH-1:0] out_word
);
  logic spare_valid;              // a word that came while the output was held
  logic [WIDTH-1:0] spare;

  assign in_ready = !spare_valid;
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      spare_valid <= 1'b0;
    end else begin
      if (!out_valid || out_ready) begin
        out_valid <= spare_valid || in_valid;
        spare_valid <= 1'b0;
      end else if (in_valid && in_ready) begin
        spare_valid <= 1'b1;
      end
    end
    if (!out_valid || out_ready) out_word <= spare_valid ? spare : in_word;
    if (in_ready) spare <= in_word;
  end
endmodule
