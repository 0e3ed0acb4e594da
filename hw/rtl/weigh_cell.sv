// The steps of one entry's content hash (crates/format/src/weight.rs): which rows of its value are read when, and what for.
//
// A value below 256 bytes is weighed when it has come whole: in rounds of 32 bytes, each of which waits for the one
// before. From 256 bytes on, stripes of 128 bytes go through four lanes as they come; the lanes are joined behind the last.
//
// Keeps: a round is asked for only when its rows are here, and four cycles or more behind the one whose state it needs.
// Leaves to others: bytes, states and products (weigh_engine).
module weigh_cell #(
  parameter int RP = 11                  // bits of a place in the ring of rows
) (
  input  logic               clk,
  input  logic               rst,
  // The entry, and where in the ring its value begins.
  input  logic               begin_entry,
  input  logic [27:0]        vlen,
  input  logic [RP-1:0]      start,
  input  logic [3:0]         number,
  output logic               idle,
  input  logic [RP-1:0]      arrived,       // behind the last row that came
  // A round.
  output logic               ask,
  input  logic               taken,
  output logic               striped,       // of a stripe
  output pkg::weigh_kind_e   kind,
  output logic [RP-1:0]      row,           // the first of two rows as they lie
  output logic [RP-1:0]      end_row,       // of two rows that hold sixteen bytes counted from the value's end
  output logic [1:0]         lane,
  output logic               first,         // the state is the seed, not what the round before left
  output logic               last,          // the state behind it is the content
  output logic [3:0]         length,        // of the value, modulo 16
  output logic [3:0]         entry,
  // The join of the four lanes. It makes a new seed.
  output logic               join_ask,
  input  logic               join_taken,
  input  logic               joined
);
  typedef enum logic [3:0] {
    IDLE, FILL, STRIPE, SETTLE, JOIN, JOINED, ROUNDS, TAIL, TAIL_A, TAIL_B, HALVES, SHORT
  } state_e;
  state_e state;
  logic [27:0] n;
  logic [22:0] left;                      // rounds of this kind
  logic [1:0] gap;                        // cycles until the round before has left its state
  logic [2:0] wait_lanes;
  logic near;                             // two rows are here
  logic [RP-1:0] have;
  logic [4:0] rows;                       // of a value below 256 bytes
  logic [1:0] tail_rows;                  // behind the last round of 32 bytes
  logic [4:0] behind;                     // end_row - row
  assign have = arrived - row;
  assign tail_rows = {1'b0, n[4]} + 2'(|n[3:0]);
  assign rows = {1'b0, n[7:4]} + 5'(|n[3:0]);

  assign idle = state == IDLE;
  assign striped = state == STRIPE;
  assign join_ask = state == JOIN;
  assign length = n[3:0];
  always_comb begin
    ask = 1'b0;
    kind = pkg::PAIR;
    last = 1'b0;
    // Of the last sixteen bytes, unless otherwise.
    behind = {4'd0, n[4]} - 5'd1;
    case (state)
      STRIPE: ask = near;
      ROUNDS: ask = near && gap == '0 && left != '0;
      TAIL_A: begin
        ask = gap == '0;
        kind = pkg::TAIL_A;
        behind = {4'd0, n[4]} - 5'd2;
      end
      TAIL_B: begin
        ask = 1'b1;
        kind = pkg::TAIL_B;
        last = 1'b1;
      end
      HALVES: begin
        ask = gap == '0;
        kind = pkg::HALF;
        last = left[2:0] == 3'd1;
        behind = {1'b0, n[7:4]} - (n > 28'd64 ? 5'd4 : n > 28'd32 ? 5'd2 : 5'd1);
      end
      SHORT: begin
        ask = 1'b1;
        kind = pkg::SHORT;
        last = 1'b1;
      end
      default: ;
    endcase
    end_row = row + {{(RP-5){behind[4]}}, behind};
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
    end else begin
      case (state)
        IDLE: if (begin_entry) state <= FILL;
        FILL:
          if (n >= 28'd256) state <= STRIPE;
          else if (have >= RP'(rows)) state <= n < 28'd16 ? SHORT : n <= 28'd128 ? HALVES : ROUNDS;
        STRIPE: if (taken && left == 23'd1) state <= SETTLE;
        SETTLE: if (wait_lanes == '0) state <= JOIN;
        JOIN: if (join_taken) state <= JOINED;
        JOINED: if (joined) state <= ROUNDS;
        ROUNDS: if (left == '0) state <= TAIL;
        TAIL: if (have >= RP'(tail_rows)) state <= TAIL_A;
        TAIL_A: if (taken) state <= TAIL_B;
        HALVES, TAIL_B, SHORT: if (taken && last) state <= IDLE;
        default: state <= IDLE;
      endcase
    end

    near <= state == STRIPE && taken ? |have[RP-1:2] : |have[RP-1:1];
    if (taken && state != STRIPE) gap <= 2'd3;
    else if (gap != '0) gap <= gap - 1'b1;
    wait_lanes <= state == SETTLE ? wait_lanes - 1'b1 : '1;
    if (taken) begin
      left <= left - 1'b1;
      if (kind == pkg::PAIR) row <= row + RP'(2);
      if (kind == pkg::HALF) row <= row + RP'(1);
      if (state == STRIPE) lane <= lane + 1'b1;
      // The first half of a tail meets no state.
      if (state == STRIPE ? lane == 2'd3 : state != TAIL_A) first <= 1'b0;
    end
    case (state)
      IDLE: begin
        n <= vlen;
        row <= start;
        entry <= number;
        lane <= '0;
        first <= 1'b1;
        gap <= '0;
      end
      FILL:
        if (n >= 28'd256) left <= {n[27:7], 2'd0};
        else if (n > 28'd128) left <= {20'd0, n[7:5]};
        else left <= n > 28'd64 ? 23'd4 : n > 28'd32 ? 23'd2 : 23'd1;
      JOINED: begin
        left <= {21'd0, n[6:5]};
        first <= 1'b1;
      end
      default: ;
    endcase
  end
endmodule
