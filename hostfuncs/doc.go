// Package hostfuncs is the wasm import module "codeexec": the only door, besides WASI, between a guest and its host.
//
// A guest submits requests, waits until some of them are answered and copies the answers into its memory; it hands out
// chunks of output and gives up the processor when its fuel is used up. The package reads guest memory with bounds
// checks, takes frames apart and puts them together, keeps the table of the calls in flight and routes each request to a
// [Handler]. It knows nothing about what the requests mean. The package that runs guests calls it: [Instantiate] once per
// wazero runtime, [NewInstance] once per guest, [Instance.Begin] and [Instance.End] around each run, and
// [Instance.Context] for each call into the guest.
//
// # The ABI
//
// All functions are imported from module "codeexec". Pointers, lengths and sizes are unsigned 32-bit numbers of bytes
// in the guest's memory; results are signed, and negative results are codes.
//
//	submit(ptr i32, len i32) -> i32
//	    Starts a call. The frame at ptr is copied before submit returns, so the guest may reuse the memory.
//	    Result: the call's id, 1 or more; TOO_BIG, FAULT, INVALID, LIMIT, NO_RUN, INTERRUPTED.
//	wait(id i32, timeout_ns i64) -> i32
//	    Blocks until the call id is answered, or any call if id is 0; a negative timeout means for ever, 0 not at all.
//	    "Any" reports the answered calls in the order of their completion and each one once; waiting for one id
//	    may be repeated, and counts as its report. With nothing in flight, wait(0, t) sleeps t.
//	    Result: the id of an answered call, 0 for a timeout; INVALID, NO_RUN, IDLE, INTERRUPTED.
//	size(id i32) -> i32
//	    Result: the length of the response frame of an answered call; INVALID, NO_RUN.
//	read(id i32, ptr i32, len i32) -> i32
//	    Copies the response frame of an answered call to ptr and forgets the call. Nothing is copied, and the call
//	    stays, when the result is a code.
//	    Result: the length of the frame; TOO_BIG if len is less than that, FAULT, INVALID, NO_RUN.
//	cancel(id i32) -> i32
//	    Cancels the context of the call's handler and forgets the call; an answer, present or to come, is dropped.
//	    Result: 0; INVALID, NO_RUN.
//	write(kind i32, ptr i32, len i32) -> i32
//	    Hands out one chunk of output. Kinds: 1 the run's result, a JSON text; 2 something to display, a frame.
//	    Result: 0; TOO_BIG, FAULT, INVALID, LIMIT if the host accepts no more of it, NO_RUN.
//	yield()
//	    Lets the host's scheduler in. Returns when the guest may go on; a host that wants the guest gone never returns
//	    from it, but unwinds the guest.
//
//	code             meaning
//	-1  TOO_BIG      a length is above its limit, or a response above the buffer that is to hold it
//	-2  FAULT        a range that is not wholly inside the guest's memory
//	-3  INVALID      a malformed frame, an unknown kind, an id that is unknown, forgotten or (size, read) not yet answered
//	-4  LIMIT        too many calls, or too many bytes of calls, are held: read or cancel some
//	-5  NO_RUN       outside of a run
//	-6  IDLE         wait would never return: no time limit, and nothing in flight
//	-7  INTERRUPTED  the context of the run has ended
//
// NO_RUN goes before INTERRUPTED, that before TOO_BIG, that before FAULT, and FAULT before the rest. An import that returns
// a code has no other effect. When the context of a run has ended, submit and wait return INTERRUPTED
// whatever else they could report; size, read, cancel and write still work until the run ends, since a guest that has
// been interrupted still has to say so.
//
// Ids are positive and belong to the instance. They count up over all its runs and are reused only after 2³¹-1 of
// them, and never while the call that bears one is held.
//
// # Frames
//
// Requests, responses and displays are frames, little endian:
//
//	u32 header_len | header, a JSON text in UTF-8 | any number of ( u32 len | bytes ), the attachments
//
//	request header    {"op": "tools.call", "params": {…}}
//	response header   {"value": any} or {"error": {"kind": string, "message": string, "data": any}}
//
// A binary value is replaced in the header by the index of an attachment. A request's op has 1 to 128 bytes, its params
// are an object (left out or null: an empty one), unknown keys of the header are ignored. A frame that comes from the
// guest has at most 1,024 attachments.
//
// # Limits
//
// No length that a guest names is allocated before it has been checked against a limit and against the guest's memory,
// and what the host holds for a guest altogether is limited, too: a call counts against [Options.MaxInFlight] from submit
// until its handler has returned and the guest has read or cancelled it; its request (while the handler runs) and its
// response (until it is read) count against [Options.MaxHeld]. A guest that submits without reading gets LIMIT.
//
// # Why a table of calls, and not one import that blocks per request
//
// A wasm guest has one thread, and a host function that blocks stops all of it. With a single blocking import,
// asyncio.gather of ten tool calls would run them one after another. Submitting and waiting are therefore two steps, and
// wait(0, t) is just the primitive on which an event loop needs to be built: "sleep until the next timer, or until
// something has happened". The synchronous call is submit and wait for its id, and costs two crossings more.
//
// # Why frames, and not JSON with base64
//
// Pictures and files are the bulk of what tools return. In base64 they grow by a third, are scanned byte by byte by two
// JSON parsers, and exist three times in guest memory (text, decoded text, bytes). An attachment is copied once, straight
// into the guest's buffer. The header stays JSON, because both sides have a fast parser for it and a human can read it.
//
// # Why the instance rides on the context
//
// wazero resolves imports by module name, so all guests of a runtime that share compiled code share the one module
// "codeexec". What differs per guest must come with the call. wazero passes the context of a call into the guest to host
// functions unchanged, finding a value in its outermost layer takes a few nanoseconds, and no registry from modules to
// instances has to be locked, and cleaned up when a guest dies. A call into the guest whose context carries no instance
// fails with an error that says so.
//
// # Why guest buffers are copied and never reused
//
// A request could be handled as a view of guest memory, and a response be written into a buffer that the guest named at
// submit. But the handler runs in a goroutine of its own: while it does, the guest goes on, frees the buffer, grows its
// memory, or is discarded and its pages unmapped. A view would then be a data race at best and a fault of the host at
// worst. So a request is copied before submit returns, and a response is written by read, on the guest's own thread of
// control, into a range that is checked at that moment.
package hostfuncs
