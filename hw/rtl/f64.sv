// F64 of several interleaved stretches of beats: A = sum of words, B = sum of the A's, mod 2^64 - 1.
//
// The running sums are kept modulo 2^64 - 1 as 64 bits and a carry that is added with the next beat, so no adder is
// longer than 64 bits.
//
// Keeps: one beat a cycle, whichever of 32 channels it is of. The result comes eight cycles after the last beat and is not
// held back.
module f64 (
  input  logic         clk,
  input  logic         rst,
  input  logic         in_valid,
  input  logic         in_first,
  input  logic         in_last,
  input  logic [4:0]   in_channel,
  input  logic [511:0] in_beat,
  output logic         out_valid,
  output logic [4:0]   out_channel,
  output logic [63:0]  out_a,
  output logic [63:0]  out_b,
  output logic         busy
);
  // Stage 0: the beat. Stages 1 to 3: what it adds to A, and to B besides 8 A: word i counts 8 - i times there.
  // With pairs p = words 2i and 2i + 1 that is 8 p0 + 6 p1 + 4 p2 + 2 p3, less the odd words.
  logic v0, f0, l0, v1, f1, l1, v2, f2, l2, v3, f3, l3, v4, f4, l4;
  logic [4:0] c0, c1, c2, c3, c4;
  logic [511:0] beat;
  logic [4*65-1:0] pair;
  logic [2*65-1:0] odd;
  logic [65:0] left2, right2, odd2;
  logic [66:0] lean_left, lean_right;
  logic [66:0] sum3;
  logic [69:0] ramp3;
  logic [64:0] sum4, ramp4;                  // modulo 2^64 - 1: 64 bits and a carry

  integer i;
  always_ff @(posedge clk) begin
    v0 <= in_valid && !rst;
    {f0, l0, c0, beat} <= {in_first, in_last, in_channel, in_beat};
    {v1, v2, v3, v4} <= {v0, v1, v2, v3} & {4{!rst}};
    {f1, l1, c1, f2, l2, c2} <= {f0, l0, c0, f1, l1, c1};
    {f3, l3, c3, f4, l4, c4} <= {f2, l2, c2, f3, l3, c3};
    for (i = 0; i < 4; i = i + 1)
      pair[65*i +: 65] <= 65'(beat[128*i +: 64]) + 65'(beat[128*i+64 +: 64]);
    for (i = 0; i < 2; i = i + 1)
      odd[65*i +: 65] <= 65'(beat[256*i+64 +: 64]) + 65'(beat[256*i+192 +: 64]);
    left2 <= 66'(pair[0 +: 65]) + 66'(pair[65 +: 65]);
    right2 <= 66'(pair[130 +: 65]) + 66'(pair[195 +: 65]);
    lean_left <= {1'b0, pair[0 +: 65], 1'b0} + 67'(pair[65 +: 65]);
    lean_right <= {1'b0, pair[130 +: 65], 1'b0} + 67'(pair[195 +: 65]);
    odd2 <= 66'(odd[0 +: 65]) + 66'(odd[65 +: 65]);
    sum3 <= 67'(left2) + 67'(right2);
    // 4 p0 + 4 p1 + 2 (2 p0 + p1) is 8 p0 + 6 p1.
    ramp3 <= {2'd0, left2, 2'd0} + {2'd0, lean_left, 1'b0} + {2'd0, lean_right, 1'b0} - 70'(odd2);
    sum4 <= 65'(sum3[63:0]) + 65'(sum3[66:64]);
    ramp4 <= 65'(ramp3[63:0]) + 65'(ramp3[69:64]);
  end

  // Stage 5: the running sums of the channel. 8 A is A turned by three bits, as 2^64 is 1.
  (* ram_style = "distributed" *) logic [65:0] run_a [32];
  (* ram_style = "distributed" *) logic [65:0] run_b [32];
  logic [65:0] old_a, old_b, new_a, new_b;
  logic [1:0] carry_a;
  logic [2:0] carry_b;
  always_comb begin
    old_a = f4 ? '0 : run_a[c4];
    old_b = f4 ? '0 : run_b[c4];
    carry_a = old_a[65:64] + 2'(sum4[64]);
    carry_b = 3'(old_b[65:64]) + 3'(ramp4[64]);
    new_a = 66'(old_a[63:0]) + 66'(sum4[63:0]) + 66'(carry_a);
    new_b = 66'(old_b[63:0]) + 66'(ramp4[63:0]) + {2'd0, old_a[60:0], old_a[63:61]}
        + {61'd0, old_a[65:64], carry_b};
  end
  logic v5, v6;
  logic [4:0] c5, c6;
  logic [65:0] whole_a, whole_b;
  logic [64:0] half_a, half_b;
  logic [63:0] fold_a, fold_b;
  assign fold_a = half_a[63:0] + 64'(half_a[64]);
  assign fold_b = half_b[63:0] + 64'(half_b[64]);
  always_ff @(posedge clk) begin
    if (v4) begin
      run_a[c4] <= new_a;
      run_b[c4] <= new_b;
    end
    v5 <= v4 && l4 && !rst;
    {c5, whole_a, whole_b} <= {c4, new_a, new_b};
    v6 <= v5 && !rst;
    c6 <= c5;
    half_a <= 65'(whole_a[63:0]) + 65'(whole_a[65:64]);
    half_b <= 65'(whole_b[63:0]) + 65'(whole_b[65:64]);
    out_valid <= v6 && !rst;
    out_channel <= c6;
    out_a <= (&fold_a) ? '0 : fold_a;
    out_b <= (&fold_b) ? '0 : fold_b;
  end
  assign busy = v0 || v1 || v2 || v3 || v4 || v5 || v6 || out_valid;
endmodule
