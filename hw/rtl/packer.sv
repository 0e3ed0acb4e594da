// Lays pieces of bytes one behind the other and hands out words of W bytes.
//
// Keeps: the words of a payload are its pieces in order, without gaps, and zeros behind the last byte. The end of a
// payload is a token of its own, with the last word if that is not full.
module packer #(
  parameter int W = 16
) (
  input  logic                 clk,
  input  logic                 rst,
  input  logic                 piece_valid,
  output logic                 piece_ready,
  input  logic [8*W-1:0]       piece,
  input  logic [$clog2(W)-1:0] piece_from,
  input  logic [$clog2(W):0]   piece_len,
  input  logic                 piece_end,
  input  pkg::block_t          piece_block,
  output logic                 out_valid,
  input  logic                 out_ready,
  output logic                 out_some,      // there is a word
  output logic [8*W-1:0]       out_word,
  output logic                 out_end,
  output pkg::block_t          out_block
);
  localparam int LW = $clog2(W);
  integer i;
  logic [LW-1:0] fill;               // bytes in `part`
  logic [8*W-1:0] part;              // zero behind them
  logic ending;                      // the token of the end is due
  logic free, take, at_once;         // the last piece ends inside this word, or with it
  assign free = !out_valid || out_ready;
  assign piece_ready = free && !ending;
  assign take = piece_valid && piece_ready;

  // Lane i gets the piece's byte i - fill, as a circle; lanes below `fill` belong to the next word.
  logic [LW-1:0] turn;
  logic [16*W-1:0] twice;
  logic [8*W-1:0] laid, now, next;
  logic [LW:0] nth, behind;
  assign turn = piece_from - fill;
  assign twice = {piece, piece};
  assign laid = twice[8*32'(turn) +: 8*W];
  assign behind = {1'b0, fill} + piece_len;
  assign at_once = take && piece_end && behind <= (LW+1)'(W);
  always_comb begin
    now = part;
    next = '0;
    nth = '0;
    for (i = 0; i < W; i = i + 1) begin
      nth = {1'b0, LW'(i) - fill};
      if (nth < piece_len) begin
        if (LW'(i) >= fill) now[8*i +: 8] = laid[8*i +: 8];
        else next[8*i +: 8] = laid[8*i +: 8];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      ending <= 1'b0;
      fill <= '0;
      part <= '0;
    end else begin
      if (out_ready) out_valid <= 1'b0;
      if (take) begin
        fill <= at_once ? '0 : behind[LW-1:0];
        part <= at_once ? '0 : behind[LW] ? next : now;
        out_valid <= behind[LW] || at_once;
        ending <= piece_end && !at_once;
      end else if (ending && free) begin
        ending <= 1'b0;
        out_valid <= 1'b1;
        fill <= '0;
        part <= '0;
      end
    end
    if (free) begin
      out_end <= ending || at_once;
      out_some <= ending ? fill != '0 : !at_once || behind != '0;
      out_word <= ending ? part : now;
    end
    if (take) out_block <= piece_block;
  end
endmodule
