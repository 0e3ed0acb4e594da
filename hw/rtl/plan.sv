// Where blocks and restart points are (R1, R2), as a function of the survivors' logical bytes alone.
//
// Keeps: S mod B as the header gives it, plus user key + 8 + value + 4 bytes for each survivor. A block starts at
// the first survivor, where S left the grid cell in which the last survivor started, and at a pending split.
// Leaves to others: encoding.
module plan #(
  parameter int W = 16
) (
  input  logic           clk,
  input  logic           rst,
  input  logic           begin_set,
  input  logic [4:0]     block_lg,
  input  logic [15:0]    interval,
  input  logic [15:0]    s_at_start,
  input  logic           in_valid,
  output logic           in_ready,
  input  pkg::op_t       in_op,
  input  logic [8*W-1:0] in_row,
  input  logic           in_last,
  output logic           out_valid,
  input  logic           out_ready,
  output pkg::op_t       out_op,
  output pkg::cut_t      out_cut,
  output logic [8*W-1:0] out_row,
  output logic           out_last
);
  logic [15:0] s;
  logic left_cell, begun, amid;            // amid: the op's first beat has passed
  logic [15:0] since;                        // entries since the last restart point
  logic [28:0] grown;
  logic [28:0] cell_mask;
  logic start, restart, take;

  assign in_ready = !out_valid || out_ready;
  assign take = in_valid && in_ready;
  assign start = !begun || left_cell || in_op.split;
  assign restart = start || since == interval;
  // A value has less than 2^28 bytes, S mod B less than 2^16: no overflow.
  assign grown = 29'(s) + 29'(in_op.ulen) + 29'(in_op.vlen) + 29'd12;
  assign cell_mask = (29'd1 << block_lg) - 29'd1;

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      {begun, left_cell, amid} <= '0;
    end else begin
      if (begin_set) s <= s_at_start;
      if (out_ready) out_valid <= 1'b0;
      if (take) begin
        out_valid <= 1'b1;
        amid <= !in_last;
        if (in_op.keep && !amid) begin
          begun <= 1'b1;
          since <= restart ? 16'd1 : since + 1'b1;
          s <= grown[15:0] & cell_mask[15:0];
          left_cell <= (grown & ~cell_mask) != '0;
        end
      end
    end
    if (take) begin
      out_op <= in_op;
      out_row <= in_row;
      out_last <= in_last;
      if (!amid) begin
        out_cut.start <= start;
        out_cut.restart <= restart;
        out_cut.s_low <= s;
        out_cut.ended <= left_cell;
      end
    end
  end
endmodule
