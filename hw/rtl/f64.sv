// F64 of several interleaved stretches of beats: A = sum of words, B = sum of the A's, mod 2^64 - 1.
//
// Keeps: one beat a cycle, whichever of 32 channels it is of. The running sums are wide enough for 2^22 beats
// without a reduction (A < 2^89, B < 2^115), so only the last beat of a stretch pays for one.
// The result comes six cycles after the last beat and is not held back.
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
  // Stage 0: the beat. Stage 1 and 2: what it adds to A, and to B besides 8 A.
  logic v0, f0, l0, v1, f1, l1, v2, f2, l2;
  logic [4:0] c0, c1, c2;
  logic [511:0] beat;
  logic [64:0] pair [4];
  logic [67:0] lean [4];
  logic [66:0] sum;
  logic [69:0] ramp;

  integer i;
  always_ff @(posedge clk) begin
    v0 <= in_valid && !rst;
    {f0, l0, c0, beat} <= {in_first, in_last, in_channel, in_beat};
    v1 <= v0 && !rst;
    {f1, l1, c1} <= {f0, l0, c0};
    // Word i counts 8 - i times in B.
    for (i = 0; i < 4; i = i + 1) begin
      pair[i] <= 65'(beat[128*i +: 64]) + 65'(beat[128*i+64 +: 64]);
      lean[i] <= 68'(beat[128*i +: 64]) * 68'(8 - 2*i) + 68'(beat[128*i+64 +: 64]) * 68'(7 - 2*i);
    end
    v2 <= v1 && !rst;
    {f2, l2, c2} <= {f1, l1, c1};
    sum <= (67'(pair[0]) + 67'(pair[1])) + (67'(pair[2]) + 67'(pair[3]));
    ramp <= (70'(lean[0]) + 70'(lean[1])) + (70'(lean[2]) + 70'(lean[3]));
  end

  // Stage 3: the running sums of the channel.
  (* ram_style = "distributed" *) logic [95:0] run_a [32];
  (* ram_style = "distributed" *) logic [127:0] run_b [32];
  logic [95:0] old_a, new_a;
  logic [127:0] old_b, new_b;
  always_comb begin
    old_a = f2 ? '0 : run_a[c2];
    old_b = f2 ? '0 : run_b[c2];
    new_a = old_a + 96'(sum);
    new_b = old_b + {29'b0, old_a, 3'b0} + 128'(ramp);
  end
  logic v3, v4;
  logic [4:0] c3, c4;
  logic [95:0] whole_a;
  logic [127:0] whole_b;
  logic [64:0] half_a, half_b;
  logic [63:0] fold_a, fold_b;
  assign fold_a = half_a[63:0] + 64'(half_a[64]);
  assign fold_b = half_b[63:0] + 64'(half_b[64]);
  always_ff @(posedge clk) begin
    if (v2) begin
      run_a[c2] <= new_a;
      run_b[c2] <= new_b;
    end
    v3 <= v2 && l2 && !rst;
    {c3, whole_a, whole_b} <= {c2, new_a, new_b};
    // Stage 4 and 5: 2^64 is 1.
    v4 <= v3 && !rst;
    c4 <= c3;
    half_a <= 65'(whole_a[63:0]) + 65'(whole_a[95:64]);
    half_b <= 65'(whole_b[63:0]) + 65'(whole_b[127:64]);
    out_valid <= v4 && !rst;
    out_channel <= c4;
    out_a <= (&fold_a) ? '0 : fold_a;
    out_b <= (&fold_b) ? '0 : fold_b;
  end
  assign busy = v0 || v1 || v2 || v3 || v4 || out_valid;
endmodule
