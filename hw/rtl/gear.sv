// Collects the packer's words of W bytes into beats of 64 and says which beat is a payload's last.
//
// Keeps: beats are the words in order, zeros behind the last one. A beat is held back until the next word or the
// payload's end comes, because only then it is known whether it is the last.
module gear #(
  parameter int W = 16
) (
  input  logic           clk,
  input  logic           rst,
  input  logic           in_valid,
  output logic           in_ready,
  input  logic           in_some,
  input  logic [8*W-1:0] in_word,
  input  logic           in_end,
  input  pkg::block_t    in_block,
  output logic           out_valid,
  input  logic           out_ready,
  output logic           out_some,       // there is a beat; an empty payload has none
  output logic [511:0]   out_beat,
  output logic           out_end,
  output pkg::block_t    out_block
);
  localparam int SUBS = 64 / W;
  logic [511:0] part, held, grown;
  logic [2:0] sub;                       // words in `part`
  logic held_valid, ending, free, take, fills;
  pkg::block_t block;
  integer i;

  assign free = !out_valid || out_ready;
  assign in_ready = free && !ending;
  assign take = in_valid && in_ready;
  assign fills = take && in_some && sub == 3'(SUBS - 1);
  always_comb begin
    grown = sub == '0 ? '0 : part;
    for (i = 0; i < SUBS; i = i + 1)
      if (sub == 3'(i)) grown[8*W*i +: 8*W] = in_word;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      {sub, held_valid, ending, out_valid} <= '0;
    end else begin
      if (out_ready) out_valid <= 1'b0;
      if (take) begin
        if (in_some) sub <= fills ? '0 : sub + 1'b1;
        if (fills) begin
          held_valid <= 1'b1;
          out_valid <= held_valid;
        end
        ending <= in_end;
      end else if (ending && free) begin
        out_valid <= sub == '0 || held_valid;
        held_valid <= sub != '0;
        sub <= '0;
        ending <= sub != '0;
      end
    end
    if (take && in_some) part <= grown;
    if (fills) held <= grown;
    else if (ending && free) held <= part;
    if (take) block <= in_block;
    if (free) begin
      out_beat <= held;
      out_some <= held_valid;
      out_end <= ending && sub == '0;
      out_block <= block;
    end
  end
endmodule
