// Constants and types that several modules share. Widths that depend on W or N are made in each module
// from its own parameters, because a package has none.
package pkg;
  // Limits of the stream (docs/formats/hw-stream.md).
  localparam int KEY_MAX = 240;        // bytes of a user key
  localparam int VLEN = 28;            // bits of a value length
  localparam int COUNT = 20;           // bits of a count of entries in an area
  localparam int RESTARTS_LG = 10;     // lg of the most restart points of a block
  localparam int SIDE = 16;            // how records name the side way
  localparam logic [31:0] IDENTITY = 32'h5546_534c;
  localparam logic [15:0] VERSION = 16'd1;

  // Codes of the status record. Unsuitable, bad input, link, in this order.
  localparam logic [7:0] OK = 8'd0;
  localparam logic [7:0] KIND = 8'd1;
  localparam logic [7:0] KEY_LONG = 8'd2;
  localparam logic [7:0] VALUE_LONG = 8'd3;
  localparam logic [7:0] SEQ_HIGH = 8'd4;
  localparam logic [7:0] DELETE_VALUE = 8'd5;
  localparam logic [7:0] STRUCTURE = 8'd16;
  localparam logic [7:0] ITEMS = 8'd17;      // COUNT of the page
  localparam logic [7:0] ORDER = 8'd18;
  localparam logic [7:0] OUT_FULL = 8'd19;
  localparam logic [7:0] LINK = 8'd32;
  localparam logic [7:0] HEADER = 8'd33;
  localparam logic [7:0] ABORTED = 8'd48;

  // An error and its place. All ones is "not known".
  typedef struct packed {
    logic [7:0]  code;
    logic [7:0]  way;
    logic [31:0] descriptor;
    logic [31:0] entry;
  } fault_t;

  // What fetch tells a decoder about the next entry area.
  typedef struct packed {
    logic                 eos;        // no area: the way has ended
    logic [28:0]          bytes;
    logic [COUNT-1:0]     skip;
    logic [COUNT-1:0]     take;       // all ones: to the end
    logic [COUNT-1:0]     expected;   // 0: unknown
    logic                 replay;
    logic                 markers;
  } area_t;

  // What gc decided about an entry, in the order in which the output takes it.
  typedef struct packed {
    logic            stop;       // the set ends; nothing else counts
    logic            keep;       // false: only the value is taken out of the way's FIFO
    logic            replay;
    logic            split;      // a split is pending: the entry starts a block
    logic [2:0]      slot;       // where in the ring of gc the key is
    logic [7:0]      ulen;
    logic [63:0]     tag;        // as written
    logic [VLEN-1:0] vlen;
    logic [4:0]      way;
  } op_t;

  // What plan adds.
  typedef struct packed {
    logic        start;        // a block starts here
    logic        restart;      // a restart point
    logic [15:0] s_low;        // S mod B before the entry
    logic        ended;        // with stop: the grid has ended the open block
  } cut_t;

  // What the encoder needs of a key: it lies in the ring of `prefix`.
  typedef struct packed {
    logic            stop;
    logic            keep;
    logic [1:0]      slot;
    logic [7:0]      ulen;
    logic [7:0]      shared;    // 0 at restart points
    logic [VLEN-1:0] vlen;
    logic [4:0]      way;
    cut_t            cut;
  } item_t;

  // What is known of a payload when its last byte has been packed.
  typedef struct packed {
    logic        open;         // the open block, which has no tail
    logic        ended;
    logic [31:0] bytes;
    logic [31:0] entries;
    logic [31:0] restarts;
    logic [31:0] number;
    logic [15:0] s_low;
  } block_t;

  // What becomes of an entry, for the sums.
  typedef enum logic [1:0] {PASSES, HIDES, ZEROES, WAITS} fate_e;
  typedef struct packed {
    logic            stop;       // no entry: the set ends
    logic            skip;       // of the side way: its key was hashed in vain
    logic            drop_held;  // first: the free deletes that wait are dropped
    logic            free_held;  // first: they are not
    fate_e           fate;
    logic [63:0]     tag;        // as read
    logic [VLEN-1:0] vlen;
  } weight_op_t;

  // A round of an entry's weight: sixteen bytes and sixteen more. Rows as they lie; a row and bytes counted from the value's
  // end; such bytes twice, which takes two steps; up to fifteen bytes.
  typedef enum logic [2:0] {PAIR, HALF, TAIL_A, TAIL_B, SHORT} weigh_kind_e;

  // Widths of the structs, as Yosys 0.23 has no $bits of a type. Lint finds a wrong one, where they are used.
  localparam int AREA_BITS = 92;
  localparam int FAULT_BITS = 80;
  localparam int OP_BITS = 112;
  localparam int ITEM_BITS = 72;
  localparam int BLOCK_BITS = 146;
  localparam int WEIGHT_OP_BITS = 98;
endpackage
