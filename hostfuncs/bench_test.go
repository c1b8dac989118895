package hostfuncs

import (
	"context"
	"testing"
)

// BenchmarkSyncCall measures submit, wait, size and read of a trivial request, seen from inside the guest.
func BenchmarkSyncCall(b *testing.B) {
	g := running(b, Options{Handler: HandlerFunc(func(context.Context, Request) (Response, error) {
		return Response{Value: []byte("1")}, nil
	})})
	frame := request("tools.call", `{"server":"s","tool":"t","arguments":{}}`)
	g.poke(guestOut, frame)
	b.ReportAllocs()
	b.ResetTimer()
	g.call("rounds", uint64(b.N), guestOut, uint64(len(frame)), guestIn)
	if got := g.Calls(); got != b.N {
		b.Fatalf("%d calls, want %d", got, b.N)
	}
}

// BenchmarkAwaitedCalls50 measures fifty calls that are in flight together and reported one by one, as by gather.
func BenchmarkAwaitedCalls50(b *testing.B) {
	g := running(b, Options{Handler: HandlerFunc(func(context.Context, Request) (Response, error) {
		return Response{Value: []byte("1")}, nil
	})})
	frame := request("tools.call", `{"server":"s","tool":"t","arguments":{}}`)
	g.poke(guestOut, frame)
	b.ReportAllocs()
	for b.Loop() {
		g.call("gather", 50, guestOut, uint64(len(frame)), guestIn)
	}
}
