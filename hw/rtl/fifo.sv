// A queue of 2^LG places. With BLOCK the memory reads in one clock, for block RAM; else at once, for
// LUTs. Either way the first word shows at the output by itself.
//
// Keeps: words leave in the order in which they came, each once; `count` is the number of words inside.
// Both `ready` and `valid` come from registers.
module fifo #(
  parameter int WIDTH = 8,
  parameter int LG = 4,
  parameter bit BLOCK = 0
) (
  input  logic             clk,
  input  logic             rst,
  input  logic             in_valid,
  output logic             in_ready,
  input  logic [WIDTH-1:0] in_word,
  output logic             out_valid,
  input  logic             out_ready,
  output logic [WIDTH-1:0] out_word,
  output logic [LG:0]      count
);
  localparam int DEPTH = 1 << LG;
  logic [LG-1:0] wp, rp;
  logic [LG:0] stored;          // words in the memory; with BLOCK, one more may be at the output
  logic put, get;

  assign in_ready = stored != (LG+1)'(DEPTH);
  assign put = in_valid && in_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      wp <= '0;
      rp <= '0;
      stored <= '0;
    end else begin
      if (put) wp <= wp + 1'b1;
      if (get) rp <= rp + 1'b1;
      stored <= stored + (LG+1)'(put) - (LG+1)'(get);
    end
  end

  generate
    if (BLOCK) begin : g_block
      (* ram_style = "block" *) logic [WIDTH-1:0] mem [DEPTH];
      logic shown;
      assign get = stored != '0 && (!shown || out_ready);
      assign out_valid = shown;
      assign count = stored + (LG+1)'(shown);
      always_ff @(posedge clk) begin
        if (put) mem[wp] <= in_word;
        if (get) out_word <= mem[rp];
        if (rst) shown <= 1'b0;
        else if (get) shown <= 1'b1;
        else if (out_ready) shown <= 1'b0;
      end
    end else begin : g_lut
      (* ram_style = "distributed" *) logic [WIDTH-1:0] mem [DEPTH];
      assign out_valid = stored != '0;
      assign get = out_valid && out_ready;
      assign out_word = mem[rp];
      assign count = stored;
      always_ff @(posedge clk) if (put) mem[wp] <= in_word;
    end
  endgenerate
endmodule
